package executor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/policy/replay"
	"github.com/fermata-go/fermata/store"
)

const (
	// rulingPaper is what the rules said of an action, and all that they looked at, for those who want to know what other rules would have
	// said. It belongs to its run, and goes with it.
	rulingPaper store.PaperKind = "ruling"
	// policyPaper is the text of a policy by which actions of the account were judged. Its id is the digest of the policy.
	policyPaper store.PaperKind = "policy"
)

// rulingFacts is what may be counted of a ruling.
type rulingFacts struct {
	Stage   replay.Stage   `json:"stage"`
	Verdict policy.Verdict `json:"verdict"`
	Rules   []string       `json:"rules"`
	Policy  string         `json:"policy"`
	Grant   string         `json:"grant,omitempty"`
	Tool    string         `json:"tool"`
}

// rulingID sorts by time, and of what is written together puts last what goes ahead with it. What was judged stands behind that.
func rulingID(at time.Time, stage replay.Stage, key string) string {
	order := "1"
	if stage == replay.Approved {
		order = "2"
	}
	return rulingTime(at) + "/" + order + "/" + key
}

func rulingTime(at time.Time) string { return at.UTC().Format("20060102T150405.000000000Z") }

// keepRuling files what the rules said, beside what comes of it, and the policy if the account sees it for the first time. A denial is filed
// also where nothing is to be kept, but without the arguments: so that it is told once.
func (e *Executor) keepRuling(ctx context.Context, c *filing, j *judgement, stage replay.Stage, key, request string) error {
	if err := e.keepPolicy(ctx, c, j.set); err != nil {
		return err
	}
	if e.config.Desk.ForgetRulings && stage != replay.Denied {
		return nil
	}
	ruled := replay.RuledOf(j.in, j.said)
	ruled.Key, ruled.Stage, ruled.Request, ruled.Said.Grant = key, stage, request, j.Grant
	facts, err := json.Marshal(rulingFacts{Stage: stage, Verdict: j.said.Verdict, Rules: j.said.Rules, Policy: j.said.Policy, Grant: j.Grant, Tool: clip(j.in.Tool)})
	if err != nil {
		return err
	}
	paper := store.PaperChange{Kind: rulingPaper, ID: rulingID(c.now, stage, key), Run: c.run.ID, Facts: facts}
	if !e.config.Desk.ForgetRulings {
		if paper.Body, err = e.sealPaper(c.run.Account, rulingPaper, paper.ID, ruled); err != nil {
			return err
		}
	}
	c.Papers = append(c.Papers, paper)
	return nil
}

// ruled reports whether a ruling was filed before. It is asked where somebody may have died after that.
func (e *Executor) ruled(ctx context.Context, run store.Run, key string) (bool, error) {
	for paper, err := range e.papers(ctx, run.Account, rulingPaper, store.PaperFilter{Run: run.ID, Limit: rulingsAtOnce}) {
		if err != nil || strings.HasSuffix(paper.ID, "/"+key) {
			return err == nil, err
		}
	}
	return false, nil
}

// deny files that the rules do not let something be done, and the line for the log. digest is that of the action.
func (e *Executor) deny(ctx context.Context, c *filing, j *judgement, key, digest, request string) error {
	if err := e.keepRuling(ctx, c, j, replay.Denied, key, request); err != nil {
		return err
	}
	return c.line(theSystem, c.place(), audit.PolicyDenied{
		Action: audit.Action{Name: clip(j.in.Tool), Args: c.digest(digest)},
		Ruling: audit.Ruling{Digest: j.Policy, Version: clip(j.Version), Rules: j.Rules},
	})
}

// denied tells, once, of an action that is denied.
func (e *Executor) denied(ctx context.Context, c *filing, j *judgement, digest string) error {
	if known, err := e.ruled(ctx, c.run, c.key); known || err != nil {
		return err
	}
	if err := e.deny(ctx, c, j, c.key, digest, ""); err != nil {
		return err
	}
	return e.store.Amend(ctx, c.run.Account, c.Beside)
}

// ruledKey names a ruling on a question that is visible to people, or would have been.
func (c *filing) ruledKey(stage replay.Stage, question string, args json.RawMessage) string {
	return ident.Derive("r", c.run.ID, string(stage), question, string(args))
}

// policies are those that are known to be kept, by account and digest: nobody has to look again.
type policies struct{ known sync.Map }

type keptPolicy struct{ account, digest string }

// keepPolicy files the text of a policy by which an action of the account is judged, if the account has not seen it yet, and says so in the log.
// Of several who do so at once one is first; the others find their filing stale, and then the policy there.
func (e *Executor) keepPolicy(ctx context.Context, c *filing, set *policy.Set) error {
	name := keptPolicy{c.run.Account, set.Digest()}
	if _, known := e.policies.known.Load(name); known {
		return nil
	}
	for _, p := range c.Papers {
		if p.Kind == policyPaper && p.ID == name.digest {
			return nil
		}
	}
	_, err := e.store.Paper(ctx, name.account, policyPaper, name.digest)
	if err == nil {
		e.policies.known.Store(name, true)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	paper := store.PaperChange{Kind: policyPaper, ID: name.digest}
	if paper.Body, err = e.sealPaper(name.account, policyPaper, name.digest, keptText{Version: set.Version(), Text: set.Source()}); err != nil {
		return err
	}
	c.Papers = append(c.Papers, paper)
	return c.line(theSystem, audit.Place{}, audit.PolicyLoaded{Ruling: audit.Ruling{Digest: name.digest, Version: clip(set.Version())}, Rules: len(set.Rules())})
}

// keptText is the body of a policy's paper.
type keptText struct {
	Version string `json:"version,omitempty"`
	Text    string `json:"text"`
}

// PolicyText is a policy as it was written.
type PolicyText struct {
	Digest, Version, Text string
	// Since is when an action of the account was judged by it for the first time; zero if none was.
	Since time.Time
}

// Policy returns the text of a policy by its digest: the one in force, or one by which an action of the account was judged. It returns
// store.ErrNotFound if there is none.
func (e *Executor) Policy(ctx context.Context, account, digest string) (PolicyText, error) {
	if digest == "" || len(digest) > MaxName {
		return PolicyText{}, store.ErrNotFound
	}
	paper, err := e.store.Paper(ctx, account, policyPaper, digest)
	if errors.Is(err, store.ErrNotFound) {
		if set := e.Rules(); set != nil && set.Digest() == digest {
			return PolicyText{Digest: digest, Version: set.Version(), Text: set.Source()}, nil
		}
	}
	if err != nil {
		return PolicyText{}, err
	}
	data, err := e.openPaper(paper)
	var kept keptText
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	return PolicyText{Digest: digest, Version: kept.Version, Text: kept.Text, Since: paper.Created}, err
}

// clip makes a text that others chose fit for a line of the log: what is too long, or no text, must not keep a denial from being one.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > audit.MaxText {
		text = strings.ToValidUTF8(text[:audit.MaxText-len("…")], "") + "…"
	}
	return text
}
