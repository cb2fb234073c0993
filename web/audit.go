package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
)

// auditData is the data of the page of the audit log.
type auditData struct {
	Records []auditRecord
	After   int64
	Newer   string // the address of the next page
	Search  string
	// Checkpoint is the latest signed state of the log.
	Checkpoint *api.Checkpoint
	PublicKey  string
	// Findings are set if the person asked for a reconciliation.
	Findings *api.Findings
	// Busy is set if the server cannot reconcile now.
	Busy *api.Problem
}

// auditRecord is a record of the log as the page shows it.
type auditRecord struct {
	Seq   int64     `json:"seq"`
	Time  time.Time `json:"time"`
	Kind  string    `json:"kind"`
	Actor struct {
		Principal string `json:"principal"`
	} `json:"actor"`
	Place struct {
		Interrupt string `json:"interrupt"`
	} `json:"place"`
	Body json.RawMessage `json:"body"`
}

// auditPage is how many records a page has.
const auditPage = 200

// audit lists the records of the log.
func (s *Site) audit(v *visit) (response, error) {
	data := auditData{Search: strings.TrimSpace(v.FormValue("q"))}
	data.After, _ = strconv.ParseInt(v.FormValue("after"), 10, 64) // a wrong number is the beginning
	if data.After < 0 {
		data.After = 0
	}
	text, err := v.api.AuditLines(v.ctx(), data.After)
	if err != nil {
		return nil, err
	}
	lines := slices.Collect(bytes.Lines(text))
	more := len(lines) > auditPage
	for _, line := range lines[:min(len(lines), auditPage)] {
		var r auditRecord
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, err
		}
		if data.Search == "" || strings.Contains(strings.ToLower(string(line)), strings.ToLower(data.Search)) {
			data.Records = append(data.Records, r)
		}
		data.After = r.Seq
	}
	if more {
		data.Newer = pageURL("/audit", "after", strconv.FormatInt(data.After, 10), "q", data.Search)
	}
	signed, err := v.api.Checkpoints(v.ctx(), 0)
	if err != nil {
		return nil, err
	}
	data.PublicKey = signed.PublicKey
	if n := len(signed.Items); n > 0 {
		data.Checkpoint = &signed.Items[n-1]
	}
	if v.FormValue("findings") != "" {
		found, err := v.api.Findings(v.ctx())
		if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Status == http.StatusServiceUnavailable {
			data.Busy = problem
		} else if err != nil {
			return nil, err
		} else {
			data.Findings = &found
		}
	}
	return page{Name: "audit", Title: v.t("audit.title"), Data: data}, nil
}

func requestURL(id string) string { return "/requests/" + url.PathEscape(id) }
