package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
)

// A store appends in its transactions and signs periodically. It gives an auditor an export and a
// public key.
func Example() {
	ctx := context.Background()
	store := new(audit.Memory)

	reason := audit.NewPayload([]byte("The invoice is right.")) // stored separately, encrypted, and deletable
	bob := audit.Actor{Principal: "bob", Kind: audit.ActorPerson, Via: "web", Auth: "sso", MFA: true}
	where := audit.Location{Run: "run_1", Interrupt: "int_1", Request: "req_1"}
	said := audit.RequestDecided{Verb: audit.VerbApprove, Settles: true, Reason: reason.Digest()}
	if _, err := store.Append(ctx, "acme", audit.NewRecord(time.Now(), bob, where, said)); err != nil {
		log.Fatal(err)
	}

	key := audit.NewKey() // or audit.OpenOrCreateKey("audit.key")
	checkpoint, err := audit.CreateCheckpoint(ctx, store, "acme", key)
	if err != nil {
		log.Fatal(err)
	}
	var export, proof bytes.Buffer
	if _, err := audit.Export(ctx, store, "acme", audit.Range{}, audit.JSONL, &export); err != nil {
		log.Fatal(err)
	}
	public, err := key.Verifier(checkpoint.Origin)
	if err != nil {
		log.Fatal(err)
	}

	// The auditor, later and elsewhere.
	trust, err := audit.NewTrust(public)
	if err != nil {
		log.Fatal(err)
	}
	report, err := audit.VerifyFile(&export, "acme", audit.VerifyOptions{Trust: trust}, io.Discard)
	fmt.Println("valid:", err == nil, "records:", report.To, "signed:", report.Signed)

	// A proof of one decision, for someone who must not see the others.
	if _, err := audit.Prove(ctx, store, "acme", 1, trust, &proof); err != nil {
		log.Fatal(err)
	}
	checked, err := audit.CheckProof(proof.Bytes(), trust, io.Discard)
	fmt.Println("proved:", err == nil, checked.Kind)

	// Output:
	// valid: true records: 1 signed: 1
	// proved: true request.decided
}

// docs:start

// auditor verifies an export with a public key, and with a known checkpoint if there is one.
func auditor(exportFile, keyFile string, kept ...string) error {
	public, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	trust, err := audit.NewTrust(string(public))
	if err != nil {
		return err
	}
	options := audit.VerifyOptions{Trust: trust}
	for _, name := range kept {
		checkpoint, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		options.KnownCheckpoints = append(options.KnownCheckpoints, checkpoint)
	}
	export, err := os.Open(exportFile)
	if err != nil {
		return err
	}
	defer export.Close()
	_, err = audit.VerifyFile(export, "", options, os.Stdout)
	return err // nil, or *audit.Problem: the first invalid record and its fault
}

// docs:end
