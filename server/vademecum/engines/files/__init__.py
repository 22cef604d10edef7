"""Extract text from files. Each file has its own subprocess, so that a hostile file can only make its own request fail.

file_type          detects the type from the bytes
charset            decodes text of unknown encoding
subprocess_runner  starts the process, limits it and interprets its exit
worker             runs inside the process
formats            one module per format, imported only by the worker

This `__init__` imports nothing, because the worker process would then load the subprocess runner, too.
"""
