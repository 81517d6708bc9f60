"""Sums over blocks of rows: sources that can be read repeatedly, executors, and algorithms on the sums.

A source is a list of parts, each of which gives blocks of rows in a fixed order. A statistic is a function of one block
and the current parameters. The total adds the statistics of all blocks pairwise in their order, so that the same blocks
give the same bits, whichever threads or machines computed them.
"""
