// Package sqlitestore keeps the sessions of an agent in an SQLite database: a sessionstore.Store in one file, for
// agents that already have a database, or whose users want to query the sessions with SQL. It does not serve several
// machines: the file must be on a local disk. It does not encrypt its data, and does not shrink the file when sessions
// are deleted; their space is reused.
//
// Agents that do not need this can use the default of package sessionstore, a directory of files, and avoid the
// dependency: this package is a separate module because it needs modernc.org/sqlite, which is SQLite translated to Go
// and does not need a C compiler.
//
// An agent that is started without a home directory keeps its sessions in memory with sessionstore.OpenApp:
//
//	store, _, err := sessionstore.OpenApp("my-agent", "", func(dir string) (sessionstore.Store, error) {
//		return sqlitestore.Open(ctx, filepath.Join(dir, "sessions.db"), nil)
//	})
//
// # The database
//
// Any number of processes may use the file at once; each change is a transaction. While the database is open there are
// two more files, with the same name followed by -wal and -shm. The file, and a directory that is created for it, are
// accessible only to their owner.
//
// Other programs may read the tables, with any tool:
//
//	session         a session in each row: protocol (its version), id, cwd, title, directories (a JSON array),
//	                created and updated (in microseconds since 1970), state (JSON), size (bytes of its updates)
//	session_update  an update in each row, by the session's key: json, as it was sent; in the order of its own key
package sqlitestore
