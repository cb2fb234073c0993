package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/analytics"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/store"
)

// lines is the media type of JSON objects, one to a line.
const lines = "application/x-ndjson"

// lifeOf is a request as those may see it who may see the question.
func (s *Server) lifeOf(doc desk.Request, me Principal) *api.Life {
	life := &api.Life{
		Revision: doc.Rev, State: string(doc.State), Summary: doc.Summary(time.Now()), Action: doc.Asked.Action, Risk: doc.Asked.Risk, Requester: doc.Asked.Requester,
		Policy: doc.Asked.Policy, Rules: doc.Asked.Rules, Reason: doc.Asked.Reason, Route: doc.Route.Name, MinAuth: string(doc.Need.MinAuth), Verbs: []string{}, Need: []api.Need{},
	}
	verbs := doc.Need.Verbs
	if doc.State == desk.Open {
		life.Progress = doc.Progress.String()
		if may, err := s.config.Executor.MayDo(doc, me.ID); err != nil {
			life.MayNot = desk.Code(err)
		} else {
			verbs = may
		}
	}
	for _, verb := range verbs {
		life.Verbs = append(life.Verbs, string(verb))
	}
	for _, g := range doc.Need.Groups {
		life.Need = append(life.Need, api.Need{From: g.From, Count: max(1, g.Count)})
	}
	if doc.Claim != nil {
		life.Claim = &api.Mark{By: doc.Claim.By, At: doc.Claim.At}
	}
	if !doc.Snoozed.IsZero() {
		life.Snoozed = &doc.Snoozed
	}
	if e := doc.Edit; e != nil {
		life.Edit = &api.Edit{Mark: api.Mark{By: e.By, At: e.At}, Args: e.Args, Fields: e.Fields}
	}
	told(life, doc)
	return life
}

// told adds what people said and did.
func told(life *api.Life, doc desk.Request) {
	note := func(n desk.Note) api.Note { return api.Note{Mark: api.Mark{By: n.By, At: n.At}, Text: n.Text} }
	for _, v := range doc.Votes {
		life.Votes = append(life.Votes, api.Vote{Mark: api.Mark{By: v.By, At: v.At}, Verb: string(v.Verb), Reason: v.Reason})
	}
	for _, c := range doc.Comments {
		life.Comments = append(life.Comments, note(c))
	}
	for _, q := range doc.Questions {
		asked := api.Question{Note: note(q.Note)}
		if q.Answer != nil {
			answer := note(*q.Answer)
			asked.Answer = &answer
		}
		life.Questions = append(life.Questions, asked)
	}
	for _, e := range doc.Log {
		life.History = append(life.History, api.Happened{Mark: api.Mark{By: e.By, At: e.At}, Revision: e.Rev, What: string(e.What), Text: e.Text})
	}
}

// withLife adds to a request what people did with it, if it is known to them.
func (s *Server) withLife(ctx context.Context, q executor.QuestionView) api.Request {
	r := s.requestOf(q)
	if q.Request == nil {
		return r
	}
	r.Life, r.Shown = s.lifeOf(*q.Request, who(ctx)), q.Request.Digest()
	if q.State == store.Withdrawn {
		r.Life.State = string(desk.Withdrawn)
	}
	return r
}

type actInput struct {
	ID   string `path:"id" maxLength:"512"`
	Once string `header:"Idempotency-Key" maxLength:"256" doc:"The same act with the same key counts once."`
	Body api.Act
}

// from says who does it, and under which key.
func (in *actInput) from(ctx context.Context, act string) desk.From {
	from := who(ctx).from()
	if act == "reply" { // whoever replies does so for the run
		from.Actor.Kind = desk.Agent
	}
	if in.Once != "" {
		from.Once = onceFor(in.Once, act, in.Body)
	}
	return from
}

// onceFor has an act count once under a key.
func onceFor(key, act string, body any) desk.Once {
	text, _ := json.Marshal(body) // was decoded from JSON
	return desk.Once{Key: key, Digest: ident.Derive("act", act, string(text))}
}

// acts are what can be done with a request beside deciding, by the last word of the path.
var acts = []struct {
	name, summary string
	roles         []Role
	act           func(from desk.From, body api.Act) desk.Act
}{
	{"view", "Say that you look at it", []Role{Approver}, func(f desk.From, b api.Act) desk.Act {
		f.Seen.Digest = b.Shown
		return desk.View{From: f}
	}},
	{"claim", "Look after it", []Role{Approver}, func(f desk.From, _ api.Act) desk.Act { return desk.Claim{From: f} }},
	{"release", "Look after it no longer", []Role{Approver}, func(f desk.From, _ api.Act) desk.Act { return desk.Release{From: f} }},
	{"comment", "Say something to all who look at it", []Role{Agent, Approver}, func(f desk.From, b api.Act) desk.Act { return desk.Comment{From: f, Text: b.Text} }},
	{"question", "Ask the run something; the request stays open", []Role{Approver}, func(f desk.From, b api.Act) desk.Act { return desk.AskBack{From: f, Question: b.Text} }},
	{"reply", "Answer a question that people asked back", []Role{Agent}, func(f desk.From, b api.Act) desk.Act {
		return desk.AnswerBack{From: f, Question: b.Question, Answer: b.Text}
	}},
	{"delegate", "Have somebody else decide", []Role{Approver}, func(f desk.From, b api.Act) desk.Act { return desk.Delegate{From: f, To: b.To, Reason: b.Text} }},
	{"snooze", "Leave everybody in peace for a while", []Role{Approver}, func(f desk.From, b api.Act) desk.Act { return desk.Snooze{From: f, Until: until(b)} }},
	{"extend", "Move the deadline", []Role{Approver}, func(f desk.From, b api.Act) desk.Act { return desk.Extend{From: f, Until: until(b)} }},
	{"escalate", "Take the next step of the route now", []Role{Approver}, func(f desk.From, b api.Act) desk.Act { return desk.Escalate{From: f, Reason: b.Text} }},
}

func until(b api.Act) time.Time {
	if b.Until == nil {
		return time.Time{}
	}
	return *b.Until
}

func (s *Server) registerDesk() {
	for _, a := range acts {
		op := operation(a.name+"-request", http.MethodPost, api.Prefix+"/requests/{id}/"+a.name, a.summary, a.roles...)
		if name, _ := desk.Origin(a.act(desk.From{}, api.Act{})); name != desk.NameView { // whoever may only read says so, too, and is not counted
			op.Metadata[actsAs] = name
		}
		huma.Register(s.api, op, func(ctx context.Context, in *actInput) (*requestOutput, error) {
			return s.act(ctx, in.ID, a.act(in.from(ctx, a.name), in.Body))
		})
	}
	escape := operation("escape-request", http.MethodPost, api.Prefix+"/requests/{id}/escape", "Give up the task that the question is part of: the run is ended", Approver)
	escape.Metadata[actsAs] = desk.NameEscape
	huma.Register(s.api, escape, s.escape)
	s.registerPolicies()
	huma.Register(s.api, operation("list-routes", http.MethodGet, api.Prefix+"/routes", "The ways on which people are told", Approver, Auditor), s.listRoutes)
	huma.Register(s.api, operation("analytics", http.MethodGet, api.Prefix+"/analytics", "What came of requests: how long, how often, who, which rule", Approver, Auditor), s.analytics)
	audit := operation("read-audit", http.MethodGet, api.Prefix+"/audit", "The audit log of the account, as it is stored: one line each", Auditor)
	audit.Responses = map[string]*huma.Response{"200": {
		Description: "Lines, each a JSON object. Whoever changes a byte of one breaks the chain.", Content: map[string]*huma.MediaType{lines: {Schema: &huma.Schema{Type: "string"}}},
	}}
	huma.Register(s.api, audit, s.readAudit)
}

func (s *Server) act(ctx context.Context, id string, act desk.Act) (*requestOutput, error) {
	me := who(ctx)
	if _, err := s.config.Executor.Act(ctx, me.Account, id, act); err != nil {
		return nil, explain(err)
	}
	return s.getRequest(ctx, &requestInput{ID: id})
}

func (s *Server) escape(ctx context.Context, in *actInput) (*requestOutput, error) {
	act := desk.Escape{From: in.from(ctx, "escape"), Reason: in.Body.Text}
	if err := s.config.Executor.Escape(ctx, who(ctx).Account, in.ID, act); err != nil {
		return nil, explain(err)
	}
	return s.getRequest(ctx, &requestInput{ID: in.ID})
}

func (s *Server) listRoutes(context.Context, *struct{}) (*explainOutput, error) {
	body, err := json.Marshal(s.config.Executor.Routes())
	return &explainOutput{body}, err
}

type auditInput struct {
	After int64 `query:"after" minimum:"0" doc:"The number of the last line that is known."`
	Limit int   `query:"limit" minimum:"0" maximum:"1000" doc:"How many lines; 1000 if not said."`
}

// readAudit writes lines exactly as they are stored: their hashes depend on every byte.
func (s *Server) readAudit(ctx context.Context, in *auditInput) (*huma.StreamResponse, error) {
	list, err := s.config.Executor.AuditLines(ctx, who(ctx).Account, in.After, in.Limit)
	if err != nil {
		return nil, explain(err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", lines)
		var text strings.Builder
		for _, line := range list {
			text.Write(line.Raw)
			text.WriteByte('\n')
		}
		_, _ = hc.BodyWriter().Write([]byte(text.String())) // whoever has gone needs no error
	}}, nil
}

type analyticsInput struct {
	Days int    `query:"days" minimum:"1" maximum:"3660" default:"30" doc:"How far to look back."`
	Zone string `query:"zone" maxLength:"64" doc:"Where people work, as Europe/Zurich; UTC if not said."`
}

// analytics shows people by name to those who have to look after them; others see themselves.
func (s *Server) analytics(ctx context.Context, in *analyticsInput) (*struct{ Body analytics.Report }, error) {
	me := who(ctx)
	zone, err := time.LoadLocation(in.Zone)
	if err != nil {
		return nil, problem("bad_request", "%q is no time zone", in.Zone)
	}
	query := analytics.Query{Since: time.Now().AddDate(0, 0, -in.Days), Zone: zone}
	if !me.Has(Auditor) {
		query.Person = me.ID
	}
	done, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	report, err := s.config.Executor.Analytics(ctx, me.Account, query)
	if err != nil {
		return nil, explain(err)
	}
	return &struct{ Body analytics.Report }{report}, nil
}
