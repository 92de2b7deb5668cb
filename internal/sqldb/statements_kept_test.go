package sqldb

// StatementsKept tells how many prepared statements reads and writes keep.
func StatementsKept(db *SQLite) (reads, writes int) {
	db.sqlQuerier.std.(*prepared).kept.Range(func(any, any) bool { reads++; return true })
	return reads, len(db.write.kept)
}
