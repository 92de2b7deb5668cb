package sqldb

// Connections tells how many of them there are, how many are in use, and how many there may be.
func (db *SQLite) Connections() (open, inUse, limit int) {
	read, write := db.read.Stats(), db.write.Stats()
	return read.OpenConnections + write.OpenConnections, read.InUse + write.InUse, readers + 1
}

// Connections tells how many of them there are, how many are in use, and how many there may be; the one that listens aside.
func (db *Postgres) Connections() (open, inUse, limit int) {
	now := db.pool.Stat()
	return int(now.TotalConns()), int(now.AcquiredConns()), int(now.MaxConns())
}
