// Package audit is the record of who decided what, on what they were shown, and what was done: a chain of records per account in which
// nothing can be changed, left out or put in unnoticed.
//
// Whoever changes something hands the store a line with the change, and the store writes both in one transaction or neither:
//
//	line, err := audit.NewLine(account, actor, place, audit.RequestViewed{Shown: shown})
//	err = store.Amend(ctx, account, store.Writes{Audit: [][]byte{line}})
//
// The store puts the line's number, the hash of the line before and the time in front, and nothing is changed any more. [Append] does the same without a
// store, and computes what a log has to keep besides. [NewStoreLog] makes a [Log] of a store.
//
// The bytes that are stored are the bytes that are hashed; nobody writes them anew. A record holds the hash of the one before it, so an
// edited, deleted, repeated or moved record is found with its number. What a chain cannot show, a tail that was cut or a chain that was written anew
// from the start, shows against a signed checkpoint that was kept elsewhere:
//
//	record 1 ◀─prev─ record 2 ◀─prev─ record 3 ◀─ …           the chain: Verifier
//	    │                │                │
//	    └───────┬────────┘                │
//	         node ───────────┬────────────┘                       the tree over the same hashes (RFC 6962)
//	                       root ──▶ origin, size, root, signature   a Checkpoint: C2SP signed note, Ed25519
//
// The tree makes two small proofs possible: that a record is among those that were signed ([Prove], [CheckProof]), and that a later checkpoint
// only adds to an earlier one ([ProveConsistency], [CheckConsistency]). Both are checked offline, with the public key alone.
//
// There are no payloads in a record. It says what was shown, asked and answered by [Digest], with a salt that is kept with the payload and erased
// with it: then nobody can find out by guessing what the digest stood for, and the chain is as whole as before.
//
// [Log] is what can be read and signed, [StoreLog] that of a store, [Memory] the one to compare with, and package audittest the suite for all of them. [Verify],
// [VerifyFile], [Prove], [CheckProof] and [Export] are the commands; [Reconcile] holds the record against what the runtime did.
package audit
