"""The gate: does a compressed model keep what a policy asks for?"""
