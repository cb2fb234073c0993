package rulescmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
	"github.com/fermata-go/fermata/internal/tui"
)

type policySimulate struct {
	cli.Remote
	Policy string `arg:"" help:"The policy file."`
	Inputs string `help:"Recorded actions, one per line." placeholder:"FILE"`
	Replay string `help:"Compare with the rulings of the server over this period, for example 30d." placeholder:"SPAN"`
}

// Run evaluates recorded actions: those of a file are counted, those of a server are compared with
// its rulings.
func (c *policySimulate) Run(ctx context.Context, p *cli.Program) error {
	switch {
	case (c.Inputs == "") == (c.Replay == ""):
		return cli.Usagef("pass either --inputs with a file of recorded actions, or --replay to query the server")
	case c.Inputs != "":
		return c.simulateFile(p)
	}
	return c.replay(ctx, p)
}

func (c *policySimulate) replay(ctx context.Context, p *cli.Program) error {
	var span policy.Duration
	if err := span.UnmarshalText([]byte(c.Replay)); err != nil || time.Duration(span) < time.Second {
		return cli.Usagef("--replay: %s is not a duration, such as 30d or 12h", c.Replay)
	}
	// so that errors name the file
	if _, err := loadPolicy(c.Policy, policy.Options{UnknownFields: policy.OptionalFields}); err != nil {
		return err
	}
	text, err := cli.ReadFile(c.Policy)
	if err != nil {
		return err
	}
	to, err := c.Client()
	if err != nil {
		return err
	}
	raw, err := to.ReplayPolicy(ctx, api.ReplayPolicy{Policy: string(text), Seconds: int64(time.Duration(span) / time.Second)})
	if err != nil {
		return err
	}
	var past replay.HistoryReport
	if err := json.Unmarshal(raw, &past); err != nil {
		return err
	}
	var reply strings.Builder
	if err := past.Print(&reply); err != nil {
		return err
	}
	if err := p.Print(past, func(w io.Writer) { fmt.Fprint(w, cli.EscapeControls(reply.String())) }); err != nil {
		return err
	}
	if past.Weakens() {
		return fmt.Errorf("%w: %s would have allowed more", cli.ErrNeedsAttention, c.Policy)
	}
	return nil
}

type policyShow struct {
	cli.Remote
	Digest string `arg:"" optional:"" help:"The digest of the policy, as in requests and the audit log; defaults to the policy in force."`
}

// Run shows the text of a policy; a file or a pipe gets it byte for byte, so that its digest is the
// same.
func (c *policyShow) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	if c.Digest == "" {
		rules, err := to.Policy(ctx)
		if err != nil {
			return err
		}
		if c.Digest = rules.Digest; c.Digest == "" {
			return cli.ErrNoPolicy
		}
	}
	text, err := to.PolicyText(ctx, c.Digest)
	if err != nil {
		return err
	}
	if p.JSON {
		return json.NewEncoder(p.Out).Encode(text)
	}
	if tui.IsTerminal(p.Out) {
		text.Text = cli.EscapeControls(text.Text)
	}
	_, err = io.WriteString(p.Out, text.Text)
	return err
}
