package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/store"
)

// votes are documents of runs. Grants belong to no run: they outlive the history, so each history
// uses its own names.
const votes store.DocumentKind = "vote"

func (m *storePair) grants() store.DocumentKind { return store.DocumentKind("grant " + m.name) }

// revision returns the revision of a document in the reference; 0 if there is none.
func (m *storePair) revision(account string, kind store.DocumentKind, id string) int64 {
	p, err := m.memory.Document(m.Context(), account, kind, id)
	if err != nil && err != store.ErrNotFound {
		m.Fatal(err)
	}
	return p.Revision
}

// documentChange returns a change, usually of an existing document.
func (m *storePair) documentChange(account, run string, kind store.DocumentKind, id string) store.DocumentChange {
	p := store.DocumentChange{Kind: kind, ID: id, Run: run, BaseRevision: m.revision(account, kind, id), Body: m.bytes(), Index: pick(m, "facts", nil, []byte(`{"a": 1}`))}
	if !m.mostly() {
		p.BaseRevision += int64(pick(m, "stale", -1, 1))
	}
	if pick(m, "next", false, true) {
		p.DueAt = m.now.Add(m.duration())
	}
	if pick(m, "deadline", false, false, true) {
		p.InterruptDeadline = m.now.Add(m.duration())
	}
	return p
}

// writes returns the writes for a change of a run, with changes of the requests.
func (m *storePair) writes(account, run string, requests ...string) (writes store.Writes) {
	slices.Sort(requests)
	for _, id := range slices.Compact(requests) {
		writes.Documents = append(writes.Documents, m.documentChange(account, run, store.RequestDocument, id))
	}
	if pick(m, "vote", false, false, true) {
		writes.Documents = append(writes.Documents, m.documentChange(account, run, votes, fmt.Sprint(run, "-v\x00", m.number())))
	}
	if pick(m, "grant", false, false, true) {
		writes.Documents = append(writes.Documents, m.documentChange(account, "", m.grants(), fmt.Sprint("g", m.number())))
	}
	for range rapid.IntRange(0, 2).Draw(m.T, "lines") {
		m.unique++
		writes.Audit = append(writes.Audit, auditLine(fmt.Sprint("line ", m.unique, " of ", m.name)))
	}
	if rapid.IntRange(0, 30).Draw(m.T, "bad") == 0 {
		writes.Audit = append(writes.Audit, []byte("{}"))
	}
	return writes
}

// decidedRequests usually returns the requests of the interrupts that a decision decides.
func (m *storePair) decidedRequests(d store.Decision) (requests []string) {
	for _, a := range d.Answers {
		if m.revision(d.Account, store.RequestDocument, a.Interrupt) > 0 && m.mostly() || !m.mostly() {
			requests = append(requests, a.Interrupt)
		}
	}
	return requests
}

func (m *storePair) commitWrites() {
	account, run := m.pendingRun()
	var requests []string
	for range rapid.IntRange(0, 2).Draw(m.T, "requests") {
		requests = append(requests, m.interruptWhere(account, run, func(i store.Interrupt) bool { return i.State == store.InterruptPending }).ID)
	}
	writes := m.writes(account, run, requests...)
	compareErrors(m, "CommitWrites", func(s store.Store) error { return s.CommitWrites(m.Context(), account, writes) })
}

func (m *storePair) dueDocuments() {
	kind, limit := pick(m, "kind", store.RequestDocument, votes, m.grants()), m.number()
	compareBoth(m, "DueDocuments", func(s store.Store) ([]store.Document, error) { return s.DueDocuments(m.Context(), kind, limit) })
}

func (m *storePair) documents() {
	account, kind := m.account(), pick(m, "kind", store.RequestDocument, votes, m.grants())
	filter := store.DocumentFilter{Limit: m.number()}
	if pick(m, "of a run", false, true) {
		filter.Run = m.run(account)
	}
	for {
		page, _ := compareBoth(m, "Documents", func(s store.Store) ([]store.Document, error) { return s.Documents(m.Context(), account, kind, filter) })
		if len(page) == 0 {
			return
		}
		filter.After = page[len(page)-1].ID
	}
}

// expiryWrites returns the writes of an expiry. It returns the same for both stores.
func (m *storePair) expiryWrites() func(store.Interrupt, *store.Document) store.Writes {
	stale, later := int64(0), time.Duration(0)
	switch pick(m, "writes", "nothing", "a line", "a line", "stale", "put off") {
	case "nothing":
		return nil
	case "stale":
		stale = 1
	case "put off":
		later = time.Duration(pick(m, "later", 25, 75, 3600e6)) * time.Microsecond
	}
	return func(i store.Interrupt, request *store.Document) (writes store.Writes) {
		writes.Audit = [][]byte{auditLine("expired in " + m.name)}
		if request != nil {
			writes.Documents = []store.DocumentChange{{Kind: store.RequestDocument, ID: i.ID, BaseRevision: request.Revision + stale, Body: []byte("expired")}}
			if later > 0 {
				writes.Documents[0].InterruptDeadline = i.Deadline.Add(later)
			}
		}
		return writes
	}
}

// compareDocuments compares the documents and audit logs of an account.
func (m *storePair) compareDocuments(account string) {
	for _, kind := range []store.DocumentKind{store.RequestDocument, votes, m.grants()} {
		compareBoth(m, "Documents", func(s store.Store) ([]store.Document, error) {
			return s.Documents(m.Context(), account, kind, store.DocumentFilter{})
		})
	}
	log := m.logs[account]
	want, err := m.memory.AuditLines(m.Context(), account, log.seen, 0)
	if err != nil {
		m.Fatal(err)
	}
	got, err := m.other.AuditLines(m.Context(), account, log.head.Seq, 0)
	if err != nil || len(got) != len(want) {
		m.Fatalf("%d lines were added, not %d: %v", len(got), len(want), err)
	}
	for n, line := range got {
		link := fmt.Appendf(nil, `{"v":1,"seq":%d,"prev":"%x",`, log.head.Seq+1, log.head.Hash)
		if !bytes.HasPrefix(line.Raw, link) || !bytes.Equal(auditBody(line.Raw), auditBody(want[n].Raw)) {
			m.Fatalf("line %d is\n%s, not\n%s…%s", line.Seq, line.Raw, link, auditBody(want[n].Raw))
		}
		log.head = chain.Head{Seq: line.Seq, Hash: chain.Hash(line.Raw)}
	}
	log.seen += int64(len(want))
	m.logs[account] = log
	if head, err := m.other.AuditHead(m.Context(), account); err != nil || head != log.head {
		m.Fatalf("the head is %v, not %v: %v", head, log.head, err)
	}
}

// auditBody returns the content of a line without its chain fields.
func auditBody(raw []byte) []byte {
	_, rest, _ := bytes.Cut(raw, []byte(`,"time":`))
	return rest
}

// auditProgress is how far the audit logs of both stores were compared. Logs are never deleted, so
// the store under test continues from the previous history.
type auditProgress struct {
	seen int64
	head chain.Head
}

func (m *storePair) openAudits() {
	m.logs = make(map[string]auditProgress)
	for _, account := range modelAccounts {
		head, err := m.other.AuditHead(m.Context(), account)
		if err != nil {
			m.Fatal(err)
		}
		m.logs[account] = auditProgress{head: head}
	}
}

// dueTimes returns the future DueAt times of documents.
func (m *storePair) dueTimes(account string) (moments []time.Time) {
	for _, kind := range []store.DocumentKind{store.RequestDocument, votes, m.grants()} {
		list, err := m.memory.Documents(m.Context(), account, kind, store.DocumentFilter{})
		if err != nil {
			m.Fatal(err)
		}
		for _, p := range list {
			moments = append(moments, p.DueAt)
		}
	}
	return moments
}
