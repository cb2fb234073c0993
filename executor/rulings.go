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
	// rulingPaper is what the rules said of an action, with their whole input, so that other rules can be tried on it: see Replay. It is deleted with its
	// run.
	rulingPaper store.PaperKind = "ruling"
	// policyPaper is the text of a policy by which actions of the account were judged. Its id is the digest of the policy.
	policyPaper store.PaperKind = "policy"
)

// rulingFacts is what is not sealed of a ruling.
type rulingFacts struct {
	Stage   replay.Stage   `json:"stage"`
	Verdict policy.Verdict `json:"verdict"`
	Rules   []string       `json:"rules"`
	Policy  string         `json:"policy"`
	Grant   string         `json:"grant,omitempty"`
	Tool    string         `json:"tool"`
}

// rulingID is the id of a ruling's paper. Ids sort by time; of rulings that are filed together, an approval is the last.
func rulingID(at time.Time, stage replay.Stage, key string) string {
	order := "1"
	if stage == replay.Approved {
		order = "2"
	}
	return rulingTime(at) + "/" + order + "/" + key
}

func rulingTime(at time.Time) string { return at.UTC().Format("20060102T150405.000000000Z") }

// keepRuling files a ruling, and the text of the policy if it is new to the account. With Desk.ForgetRulings only denials are filed, without the
// arguments: so that each has one audit line.
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
	//mutate:ruling-belongs-to-run
	paper := store.PaperChange{Kind: rulingPaper, ID: rulingID(c.now, stage, key), Run: c.run.ID, Facts: facts}
	if !e.config.Desk.ForgetRulings {
		//mutate:ruling-encrypted
		if paper.Body, err = e.sealPaper(c.run.Account, rulingPaper, paper.ID, ruled); err != nil {
			return err
		}
	}
	c.Papers = append(c.Papers, paper)
	return nil
}

// ruled reports whether a ruling was filed before, perhaps by an earlier attempt that died.
func (e *Executor) ruled(ctx context.Context, run store.Run, key string) (bool, error) {
	for paper, err := range e.papers(ctx, run.Account, rulingPaper, store.PaperFilter{Run: run.ID, Limit: rulingsAtOnce}) {
		if err != nil || strings.HasSuffix(paper.ID, "/"+key) {
			return err == nil, err
		}
	}
	return false, nil
}

// deny files a denial and its audit line. digest is that of the action.
func (e *Executor) deny(ctx context.Context, c *filing, j *judgement, key, digest, request string) error {
	if err := e.keepRuling(ctx, c, j, replay.Denied, key, request); err != nil {
		return err
	}
	return c.line(theSystem, c.place(), audit.PolicyDenied{
		Action: audit.Action{Name: clip(j.in.Tool), Args: c.digest(digest)},
		Ruling: audit.Ruling{Digest: j.Policy, Version: clip(j.Version), Rules: j.Rules},
	})
}

// denied writes the denial of an action, unless it was written before.
func (e *Executor) denied(ctx context.Context, c *filing, j *judgement, digest string) error {
	if known, err := e.ruled(ctx, c.run, c.key); known || err != nil {
		return err
	}
	if err := e.deny(ctx, c, j, c.key, digest, ""); err != nil {
		return err
	}
	return e.store.Amend(ctx, c.run.Account, c.Beside)
}

// ruledKey names a ruling on a question.
func (c *filing) ruledKey(stage replay.Stage, question string, args json.RawMessage) string {
	return ident.Derive("r", c.run.ID, string(stage), question, string(args))
}

// policies remembers, by account and digest, which policies are known to be in the store.
type policies struct{ known sync.Map }

type keptPolicy struct{ account, digest string }

// keepPolicy files the text of the policy by which an action is judged, with an audit line, if it is new to the account. If several do so at once, one
// succeeds; the others get ErrStale, and find it when they try again.
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
	//mutate:policy-load-audited
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
	var kept keptText
	err = e.readBody(paper, &kept)
	return PolicyText{Digest: digest, Version: kept.Version, Text: kept.Text, Since: paper.Created}, err
}

// clip cuts a text to what an audit line may have, and makes it valid UTF-8: a denial must not fail because of a name.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > audit.MaxText {
		text = strings.ToValidUTF8(text[:audit.MaxText-len("…")], "") + "…"
	}
	return text
}
