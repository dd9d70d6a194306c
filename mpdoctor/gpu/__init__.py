"""`mpdoctor gpu`: which precision can this machine train in, and is the hardware healthy?

`probe` reads a machine through `backends/` (each reading a value, or the reason why there is none), `capability/` says what a generation computes in,
`rules/` judge, `recommend` chooses, `examine` makes the report. Imports `core` and `causes`; pynvml only in `backends/nvml_child`; never torch.

What `api` calls:

- `fleet.resolve_gpus(names)`: the GPUs that `--gpu` names stand for, in this machine or not (`check` and `replay` use it too);
- `probe.probe(...)`: this machine; `probe.of_named(gpus)`: a machine of named GPUs;
- `examine.examine(machine, ...)`: the report.
"""
