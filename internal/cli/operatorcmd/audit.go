package operatorcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/evidence"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/store"
)

type AuditCommands struct {
	Verify      auditVerify      `cmd:"" help:"Verify the hash chain of a log. Exit code 8 if it is broken."`
	Sign        auditSign        `cmd:"" help:"Sign the current state of a log and print the checkpoint. Keep it out of reach of anyone who can write to the store."`
	Checkpoints auditCheckpoints `cmd:"" help:"Fetch the signed checkpoints of a server, to keep them out of reach of its operators."`
	Prove       auditProve       `cmd:"" help:"Write a proof that a record is in the log."`
	Trail       auditTrail       `cmd:"" help:"Show what was proposed, approved and executed, as the log has it. Exit code 8 if something else was executed than was approved."`
	Check       auditCheck       `cmd:"" help:"Check a proof, or the evidence of a request, with the public key only."`
	Export      auditExport      `cmd:"" help:"Export a log, to be verified elsewhere."`
	Reconcile   auditReconcile   `cmd:"" help:"Reconcile the log with runs and effects. Exit code 8 if there are findings."`
}

// auditFlags names the log of an account.
type auditFlags struct {
	serve.StoreFlags
	Account string `required:"" help:"The account."`
}

func (c auditFlags) with(ctx context.Context, use func(*audit.StoreLog, store.Store) error) error {
	return c.WithStore(ctx, func(s store.Store) error { return use(audit.NewStoreLog(s), s) })
}

// withLog requires that the account has a log: a mistyped name must not look like a valid log, or
// create one.
func (c auditFlags) withLog(ctx context.Context, use func(*audit.StoreLog, store.Store) error) error {
	return c.with(ctx, func(log *audit.StoreLog, s store.Store) error {
		head, err := log.Head(ctx, c.Account)
		if err == nil && head.Size == 0 {
			err = fmt.Errorf("%w: %q", cli.ErrNoLog, c.Account)
		}
		if err != nil {
			return err
		}
		return use(log, s)
	})
}

// trustFlags are the trusted public keys.
type trustFlags struct {
	Pub []string `help:"A public key, or a file with one, as printed by fermata audit sign. Without one only the hash chain is verified, which the owner of the store could have rewritten." placeholder:"KEY"`
}

func (t trustFlags) trust() (audit.Trust, error) { return parseTrust(t.Pub) }

// requiredTrustFlags are the trusted public keys of a command that needs at least one.
type requiredTrustFlags struct {
	Pub []string `required:"" help:"The public key of the signer, or a file with it, as printed by fermata audit sign and fermata audit checkpoints." placeholder:"KEY"`
}

func (s requiredTrustFlags) trust() (audit.Trust, error) { return parseTrust(s.Pub) }

func parseTrust(named []string) (audit.Trust, error) {
	var keys []string
	for _, key := range named {
		if text, err := os.ReadFile(key); err == nil {
			key = string(text)
		}
		keys = append(keys, strings.Fields(key)...)
	}
	trust, err := audit.NewTrust(keys...)
	if err != nil {
		err = cli.Usagef("--pub: neither a public key nor a file with one; fermata audit sign and fermata audit checkpoints print it: %w", err)
	}
	return trust, err
}

type auditVerify struct {
	auditSource
	trustFlags
	Kept []string `help:"A checkpoint that was kept elsewhere (needs --pub), or a directory of them (audit.sign.dir) with their public keys; the log must extend each." placeholder:"FILE" type:"path"`
	File string   `help:"Verify an export instead of the store." placeholder:"FILE" type:"existingfile"`
}

// Run verifies a log.
func (c *auditVerify) Run(ctx context.Context, p *cli.Program) error {
	against := audit.VerifyOptions{}
	for _, name := range c.Kept {
		notes, keys, err := readCheckpoints(name, c.Account)
		if err != nil {
			return err
		}
		against.KnownCheckpoints = append(against.KnownCheckpoints, notes...)
		c.Pub = append(c.Pub, keys...)
	}
	var err error
	if against.Trust, err = c.trust(); err != nil {
		return err
	}
	// otherwise a valid log would be reported as broken
	if len(against.KnownCheckpoints) > 0 && against.Trust.IsEmpty() {
		return cli.Usagef("--kept: a checkpoint needs the public key of its signer: pass it with --pub; a directory (audit.sign.dir) contains it")
	}
	out := p.Out
	if p.JSON {
		out = io.Discard
	}
	if c.File == "" && c.Account == "" {
		return c.verifyRemote(ctx, p, against, out)
	}
	tell := func(report audit.VerifyReport, err error) error {
		return printVerified(p, report, err)
	}
	if c.File != "" {
		file, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer file.Close()
		return tell(audit.VerifyFile(file, c.Account, against, out))
	}
	on := auditFlags{c.StoreFlags, c.Account}
	reads := on.withLog
	if len(against.KnownCheckpoints) > 0 {
		reads = on.with // kept checkpoints must also detect a deleted log
	}
	return reads(ctx, func(log *audit.StoreLog, _ store.Store) error {
		return tell(audit.Verify(ctx, log, c.Account, against, out))
	})
}

// printVerified prints the report of a verification as JSON, if it was requested.
func printVerified(p *cli.Program, report audit.VerifyReport, err error) error {
	if _, wrong := errors.AsType[*audit.Problem](err); wrong {
		err = fmt.Errorf("%w: %w", cli.ErrNeedsAttention, err)
	}
	if p.JSON {
		return errors.Join(p.Print(report, nil), err)
	}
	return err
}

type auditSign struct {
	auditFlags
	Key string `required:"" help:"The file with the signing key; it is created if missing. Keep it apart from the store." placeholder:"FILE"`
}

// CheckpointReport is the JSON output of a signature.
type CheckpointReport struct {
	Size   int64  `json:"size"`
	Note   string `json:"note"`
	Public string `json:"publicKey"`
}

// Run signs a log.
func (c *auditSign) Run(ctx context.Context, p *cli.Program) error {
	return c.withLog(ctx, func(log *audit.StoreLog, _ store.Store) error {
		key, err := audit.OpenOrCreateKey(c.Key)
		if err != nil {
			return err
		}
		checkpoint, err := audit.CreateCheckpoint(ctx, log, c.Account, key)
		if err != nil {
			return err
		}
		public, err := key.Verifier(checkpoint.Origin)
		if err != nil {
			return err
		}
		return p.Print(CheckpointReport{checkpoint.Size, string(checkpoint.Note), public}, func(w io.Writer) {
			fmt.Fprintf(p.Err, "public key: %s\n", public)
			fmt.Fprintf(w, "%s", checkpoint.Note)
		})
	})
}

type auditProve struct {
	auditFlags
	requiredTrustFlags
	What string `arg:"" help:"The sequence number of a record; or the id of a request or run, or a state key: then the proof is of its last decision."`
}

// Run writes a proof.
func (c *auditProve) Run(ctx context.Context, p *cli.Program) error {
	trust, err := c.trust()
	if err != nil {
		return err
	}
	return c.withLog(ctx, func(log *audit.StoreLog, _ store.Store) error {
		seq, err := strconv.ParseInt(c.What, 10, 64)
		if err != nil {
			if seq, err = lastDecision(ctx, log, c.Account, c.What); err != nil {
				return err
			}
		}
		proof, err := audit.Prove(ctx, log, c.Account, seq, trust, p.Out)
		if err == nil { // the proof itself is for programs
			fmt.Fprint(p.Err, audit.DescribeDecision([]byte(proof.Record)))
		}
		return err
	})
}

// lastDecision returns the sequence number of the last decision about an object, or of the last
// record about it.
func lastDecision(ctx context.Context, log audit.Log, account, id string) (seq int64, err error) {
	decided := false
	for record, err := range audit.RecordsAbout(ctx, log, account, id) {
		if err != nil {
			return 0, err
		}
		_, is := record.Body.(audit.RequestDecided)
		if is || !decided {
			seq, decided = record.Seq, is
		}
	}
	if seq == 0 {
		err = fmt.Errorf("%w: no record about %q", audit.ErrNotFound, id)
	}
	return seq, err
}

type auditCheck struct {
	Pub   []string `help:"The public key of the signer, or a file with it, as printed by fermata audit sign and fermata audit checkpoints. Without one, evidence is checked with the key that it contains, which does not prove who made it." placeholder:"KEY"`
	Proof string   `arg:"" help:"The file with the proof or the evidence; - is standard input."`
}

// Run checks a proof or a bundle.
func (c *auditCheck) Run(p *cli.Program) error {
	trust, err := parseTrust(c.Pub)
	if err != nil {
		return err
	}
	proof, err := cli.ReadAll(c.Proof)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(proof, []byte("<!doctype html>")) {
		return c.checkBundle(p, proof, trust)
	}
	if trust.IsEmpty() {
		return cli.Usagef("--pub is required to check a proof")
	}
	if p.JSON {
		checked, err := audit.CheckProof(proof, trust, io.Discard)
		if err != nil {
			return invalidProof(err)
		}
		return p.Print(map[string]any{"account": checked.Account, "seq": checked.Seq, "kind": checked.Kind, "signed": checked.Checkpoint.Size}, nil)
	}
	_, err = audit.CheckProof(proof, trust, p.Out)
	return invalidProof(err)
}

// checkBundle checks the evidence of a request.
func (c *auditCheck) checkBundle(p *cli.Program, file []byte, trust audit.Trust) error {
	out := p.Out
	if p.JSON {
		out = io.Discard
	}
	report, err := evidence.Check(file, trust, out)
	if err != nil || !p.JSON {
		return invalidProof(err)
	}
	return p.Print(report, nil)
}

// invalidProof marks the error of a check: a proof that does not hold needs attention.
func invalidProof(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", cli.ErrNeedsAttention, err)
	}
	return err
}

type auditExport struct {
	auditSource
	Format string `help:"jsonl, which can be verified, or cloudevents." enum:"jsonl,cloudevents" default:"jsonl"`
	From   int64  `help:"The first record." default:"1"`
	To     int64  `help:"The last record; 0 is the end." default:"0"`
}

// Run exports a log.
func (c *auditExport) Run(ctx context.Context, p *cli.Program) error {
	if c.Account == "" {
		return c.exportRemote(ctx, p)
	}
	return auditFlags{c.StoreFlags, c.Account}.withLog(ctx, func(log *audit.StoreLog, s store.Store) error {
		done, err := audit.Export(ctx, log, c.Account, audit.Range{From: c.From, To: c.To}, audit.Format(c.Format), p.Out)
		if err != nil {
			return err
		}
		line, err := operatorAudit(c.Account, done)
		if err == nil {
			err = s.CommitWrites(ctx, c.Account, line)
		}
		return err
	})
}

// operatorActor is the actor of operator commands on the store.
const operatorActor = "operator"

// operatorAudit returns an audit record about an operator's action. The operator's identity is not
// known to the program.
func operatorAudit(account string, did audit.Body) (store.Writes, error) {
	actor := audit.Actor{Principal: operatorActor, Kind: audit.ActorSystem, Via: "cli"}
	if me, err := user.Current(); err == nil && me.Username != "" {
		actor.Identity = "os:" + strings.ToValidUTF8(me.Username, "\uFFFD")
	}
	line, err := audit.NewLine(account, actor, audit.Location{}, did)
	return store.Writes{Audit: [][]byte{line}}, err
}

type auditReconcile struct {
	auditSource
}

// findingRow is the JSON output of a finding.
type findingRow struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Run      string `json:"run,omitempty"`
	Request  string `json:"request,omitempty"`
	Seq      int64  `json:"seq,omitempty"`
	Text     string `json:"text"`
}

var errFindings = fmt.Errorf("%w: there are reconciliation findings", cli.ErrNeedsAttention)

// Run reconciles the log with runs and effects.
func (c *auditReconcile) Run(ctx context.Context, p *serve.Program) error {
	list, err := c.findings(ctx, p)
	if err != nil {
		return err
	}
	err = p.Print(list, func(w io.Writer) {
		for _, f := range list {
			fmt.Fprintf(w, "%-5s %-20s %s\n", f.Severity, f.Code, cli.OneLine(f.Text))
		}
		if len(list) == 0 {
			fmt.Fprintln(w, "the log, the runs and the effects agree")
		}
	})
	if err == nil && len(list) > 0 {
		err = errFindings
	}
	return err
}

// findings reconciles on the server, or on the store if there is an account.
func (c *auditReconcile) findings(ctx context.Context, p *serve.Program) (list []findingRow, err error) {
	list = []findingRow{}
	if c.Account == "" {
		to, err := c.server()
		if err != nil {
			return nil, err
		}
		found, err := to.Findings(ctx)
		for _, f := range found.Items {
			list = append(list, findingRow{f.Severity, f.Code, f.RunID, f.Request, f.Seq, f.Text})
		}
		return list, err
	}
	err = c.WithExecutor(ctx, p, func(o *serve.OpenExecutor) error {
		found, err := o.Reconcile(ctx, c.Account)
		for _, f := range found {
			list = append(list, findingRow{string(f.Severity), string(f.Code), f.Run, f.Interrupt, f.Seq, f.Text})
		}
		return err
	})
	// an account without data has no findings; but runs without a log are one
	if err == nil && len(list) == 0 {
		err = auditFlags{c.StoreFlags, c.Account}.withLog(ctx, func(*audit.StoreLog, store.Store) error { return nil })
	}
	return list, err
}
