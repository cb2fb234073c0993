// Package audit is the tamper-evident record of who decided what, what they were shown, and what
// was executed. Each account has a chain of records, in which a changed, removed or inserted record
// is detected.
//
// The caller passes an audit line to the store together with a change. The store writes both in one
// transaction:
//
//	line, err := audit.NewLine(account, actor, place, audit.RequestViewed{Shown: shown})
//	err = store.Amend(ctx, account, store.Writes{Audit: [][]byte{line}})
//
// The store prefixes the line with its number, the hash of the previous line and the time. [Append]
// does the same without a store, and also computes the hashes that a log keeps. [NewStoreLog]
// returns a [Log] for a store.
//
// The stored bytes are the hashed bytes; they are never encoded again. A record contains the hash
// of the previous one, so an edited, deleted, repeated or moved record is found with its number. A
// chain alone does not reveal a truncated tail, or a chain that was rewritten from the start. A
// signed checkpoint that is kept elsewhere does:
//
//	record 1 ◀─prev─ record 2 ◀─prev─ record 3 ◀─ …           the chain: Verifier
//	    │                │                │
//	    └───────┬────────┘                │
//	         node ───────────┬────────────┘                       the tree over the same hashes (RFC 6962)
//	                       root ──▶ origin, size, root, signature   a Checkpoint: C2SP signed note, Ed25519
//
// The tree allows two small proofs: that a record is among the signed ones ([Prove], [CheckProof]),
// and that a later checkpoint extends an earlier one ([ProveConsistency], [CheckConsistency]). Both
// are checked offline, with the public key alone.
//
// Records contain no payloads. They contain a [Digest] of what was shown, asked and answered, with
// a salt that is stored with the payload and erased with it. Then the payload cannot be guessed
// from the digest, and the chain stays valid.
//
// [Log] is the interface for reading and signing. [StoreLog] implements it for a store, [Memory] is
// the reference, and package audittest has the test suite. [Verify], [VerifyFile], [Prove],
// [CheckProof] and [Export] are the operations for auditors. [Reconcile] compares the records with
// what the runtime did.
package audit
