"""Store accounts and records in DuckDB files. Only this package imports duckdb.

instance          the DuckDB instance of the process, to which files are attached
cursor, threads   statements with deadlines, and the threads that run them
migrations        forward-only migrations with checksums
row_upgrade       upgrades of rows to new schema versions
user_database     one user's file: create, attach, commit, rewrite
user_store        reads and writes of one user
user_stores       all users: attach, pin, evict
opening           open the stores in a data folder
maintenance       checkpoints, memory and marks in the background
segments          how rows are stored in a user's file
account_store     accounts and tokens
erasure_ledger    ids of erased rows, kept outside backups
marks             high-water marks: the highest acknowledged seq of each user
fence, recovery   refuse accounts with damaged files, and recover those files
paths             where the files of an account are
"""
