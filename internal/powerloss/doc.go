// Package powerloss simulates a disk that records all operations, so that a test can lose power at
// any moment and see what a real disk might have kept.
//
//	database ──write, sync, …──► adapter ──► real files          what the process sees
//	                                │
//	                                └──────► Disk.LosePower(moment)   content after the power loss
//
// Synced data survives. Of the data written since, each sector survives, is lost, or is corrupt,
// regardless of the order of the writes. A file that was created or removed since may or may not
// exist. That is as much as POSIX promises, and less than most file systems do.
//
// A Disk can also inject a fault into the nth operation. A failed sync may have stored any part of
// the data and treats the rest as written, so the next sync does not retry. Linux behaves this way.
//
// The package does not know any database. An adapter calls Operation before each operation and
// records the result afterwards.
package powerloss
