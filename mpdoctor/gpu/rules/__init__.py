"""What can be wrong with GPUs and their driver, one file per rule (`GPUnnn`).

`device/` judges one GPU at a time, `machine/` what concerns several, the driver or the installed torch. To add a rule, add a file: it exports
`RULE`, its docstring is its documentation. Families: 1 driver and torch, 2 number formats, 3 health, 4 visibility, sharing and memory.
"""
