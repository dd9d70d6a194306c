"""`mpdoctor check`: will this config, script or checkpoint folder break?

sources (text with line numbers) -> dialects -> TrainingConfig -> rules. Imports `core` and `causes`;
never torch, and never the framework that a config is for.
"""
