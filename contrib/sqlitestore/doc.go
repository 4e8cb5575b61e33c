// Package sqlitestore keeps the sessions of an agent in an SQLite database: a sessionstore.Store in one file, for agents
// that have a database already, or whose people want to ask questions about the sessions in SQL. It does not serve
// several machines: the file must be on a local disk. It does not encrypt what it keeps, and does not make the file
// smaller when sessions are deleted: their room is used again.
//
// An agent that needs neither takes the default of package sessionstore, a folder of files, and saves the dependency: this
// package is a module of its own, because of modernc.org/sqlite, which is SQLite translated to Go and needs no C compiler.
//
// # The database
//
// Any number of processes may use the file at once; each change is a transaction. While it is open there are two files
// beside it, of its name with -wal and -shm. The file and a folder that is made for it are for their owner only.
//
// The tables may be read by others, with any tool:
//
//	session         a session in each row: protocol (its version), id, cwd, title, directories (a JSON array),
//	                created and updated (in microseconds since 1970), state (JSON), size (bytes of its updates)
//	session_update  an update in each row, by the session's key: json, as it was sent; in the order of its own key
package sqlitestore
