"""Config rules: one file per rule, in a folder per family, found by scanning.

Codes: CFG1 number formats and hardware; CFG2 loss scaling; CFG3 optimizer, learning rate and schedule; CFG4
clipping, accumulation, reduction; CFG50 model families, CFG52 quantisation and adapters, CFG54 fp8; CFG6
logging and masking; CFG7 saving; CFG8 consistency between files and with the framework (CFG85 speed);
CFG9 how the file is written. A code is never used again. (CFG0 are the script rules.)

A family's `__init__` may define `applies(subject)`: where it is False no rule of the family has anything
to look at (no fp8 in the run), and its rules are not even imported. Where it is a text, they could not be run
for that reason.
"""
