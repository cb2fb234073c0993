package dialog

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/store"
)

// Row counts the questions of one agent with one wording.
type Row struct {
	Agent string `json:"agent"`
	// Template is the wording with which the question was last asked, without remarks.
	Template  string `json:"template"`
	Questions int    `json:"questions"`
	Answered  int    `json:"answered"`
	Escaped   int    `json:"escaped"`
	Expired   int    `json:"expired"`
	// HandedOver counts questions that a person answered for the user.
	HandedOver int `json:"handed_over"`
	ReAsks     int `json:"re_asks"`
	Unclear    int `json:"unclear"` // replies
	// Semantic counts answers that a model matched; Corrections those that were corrected after
	// they were accepted.
	Semantic    int `json:"semantic"`
	Corrections int `json:"corrections"`
	// Waited is the sum of the times from question to answer, for Answered.
	Waited time.Duration `json:"waited"`
}

// Report is a summary of conversations.
type Report struct {
	Conversations int `json:"conversations"`
	Runs          int `json:"runs"`
	// RunsWithQuestions counts the runs that asked at least one question. The clarification rate is
	// RunsWithQuestions / Runs.
	RunsWithQuestions int   `json:"runs_with_questions"`
	Rows              []Row `json:"rows"` // by agent and template
}

// Add counts a conversation.
func (r *Report) Add(record Record) {
	r.Conversations++
	for _, link := range record.Runs {
		if link.Question != "" {
			continue
		}
		r.Runs++
		if slices.ContainsFunc(record.Questions, func(a *Asking) bool { return a.Target.Run == link.Run }) {
			r.RunsWithQuestions++
		}
	}
	for _, a := range record.Questions {
		r.add(a)
	}
}

func (r *Report) add(a *Asking) {
	template := a.Template
	if len(a.Turns) > 0 {
		template = a.Turns[0].Template
	}
	template, _, _ = strings.Cut(template, "+")
	at, found := slices.BinarySearchFunc(r.Rows, Row{Agent: a.Question.Agent, Template: template}, func(x, y Row) int {
		return cmp.Or(cmp.Compare(x.Agent, y.Agent), cmp.Compare(x.Template, y.Template))
	})
	if !found {
		r.Rows = slices.Insert(r.Rows, at, Row{Agent: a.Question.Agent, Template: template})
	}
	row := &r.Rows[at]
	row.Questions++
	row.ReAsks += a.ReAsks
	row.Unclear += a.Unclear
	switch a.Status {
	case Answered:
		row.Answered++
		if !a.AskedAt.IsZero() {
			row.Waited += a.EndedAt.Sub(a.AskedAt)
		}
		switch a.Answer.Method {
		case ByPerson:
			row.HandedOver++
		case ByCorrection:
			row.Corrections++
		}
		if a.Answer.Method == BySemantics || a.Answer.Method == ByReadBack && a.Answer.Score < 1 {
			row.Semantic++
		}
	case Escaped:
		row.Escaped++
	case Expired:
		row.Expired++
	case Queued, Asked, Confirming, Collecting, Comparing, Drafted, HandedOver, Lapsed, Withdrawn:
	}
}

// Report summarizes all conversations of an account. It reads every one of them.
func (h *Handler) Report(ctx context.Context, account string) (Report, error) {
	report := Report{Rows: []Row{}}
	for after := ""; ; {
		page, err := h.config.Store.Documents(ctx, account, ConversationDocument, store.DocumentFilter{After: after, Limit: 100})
		if err != nil || len(page) == 0 {
			return report, err
		}
		for _, doc := range page {
			var s stored
			if err := h.decode(doc, &s); err != nil {
				return report, err
			}
			if s.ID != "" {
				report.Add(s.Record)
			}
		}
		after = page[len(page)-1].ID
	}
}
