// Package plugpull is a disk that remembers what was done to it, so that a test can pull the plug at any moment and see what
// a real disk might have kept.
//
//	database ──write, sync, …──► adapter ──► real files          what the process sees
//	                                │
//	                                └──────► Disk.LosePower(moment)   what is there after the power came back
//
// What was synced is there. Of what was written since, each sector is there or not, or is neither old nor new, whatever the
// order in which it was written; a file that was made or removed since may be back or gone. That is as much as POSIX
// promises, and less than most file systems keep.
//
// A Disk can also fail: the n-th operation does not do what it should. A sync that fails may have kept any part of what it
// should have kept, and takes the rest for written: the next sync does not try again. Linux does so.
//
// The package knows no database. An adapter asks Try before each operation and tells what was done after it.
package powerloss
