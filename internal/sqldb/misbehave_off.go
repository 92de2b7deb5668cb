//go:build !misbehaving

package sqldb

// Misbehave returns db: in a release no database can be made to fail.
func Misbehave(_ string, db DB) DB { return db }

// sqliteNow is SQLite's clock in Unix milliseconds: that of the machine.
const sqliteNow = `CAST(unixepoch('subsec') * 1000 AS INTEGER)`
