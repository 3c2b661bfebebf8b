"""Where the next rollouts go: adaptive allocation, and the claims that end it.

`settings` holds what a user chooses, `policies` decide the next round, `bounds` are the time-uniform tests behind
every claim, `claims` put them into words, `rounds` ties them to what a method has seen. The arrays have pools as
their first axis: what a study simulates by the ten thousand is what a run does with one.
"""
