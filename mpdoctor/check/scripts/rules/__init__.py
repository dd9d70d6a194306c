"""Rules over training scripts: one file, one rule, codes CFG001 to CFG099. A module exports `RULE`; its subject is `model.Script`."""
