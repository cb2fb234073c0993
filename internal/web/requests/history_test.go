package requests

import (
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web/page"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// The sentences of the desk are worded for the viewer, with their times. Others stay as they are.
func TestHistory_SentencesAreInLanguageAndTimeZoneOfViewer(t *testing.T) {
	v := &page.Visit{Texts: texts.German, Zone: time.FixedZone("", 3600), Now: time.Date(2026, 11, 19, 8, 0, 0, 0, time.UTC)}
	m := &Model{ViewData: ViewData{Request: api.Request{Activity: new(api.Activity)}}}
	for sentence, want := range map[string]string{
		"claimed it":                               "hat sie übernommen",
		"answered clarification 1 of dana":         "hat die Rückfrage von dana beantwortet",
		"told user:dana":                           "hat user:dana benachrichtigt",
		"snoozed it until 2026-11-19 12:44 UTC":    "hat sie bis 13:44 zurückgestellt",
		"rejected it: too much":                    "hat abgelehnt: too much",
		"closed it: expire":                        "geschlossen: Die Frist ist abgelaufen",
		"turned it around at 2026-11-19 12:44 UTC": "turned it around at 13:44",
	} {
		if got := m.HistoryText(v, api.HistoryEntry{Text: sentence}); got != want {
			t.Errorf("%q: %q, want %q", sentence, got, want)
		}
	}
	for progress, want := range map[string]string{
		"0 of 2, needs 1 × support, needs 1 × finance or ops": "0 von 2, nötig: 1 × support, nötig: 1 × finance or ops",
		"1 of 2, stage 2 of 3, 1 of 2 against":                "1 von 2, Stufe 2 von 3, 1 von 2 dagegen",
		"1 of 2, something new":                               "1 of 2, something new",
	} {
		m.Activity.Progress = progress
		if got := m.ProgressText(v); got != want {
			t.Errorf("%q: %q, want %q", progress, got, want)
		}
	}
}
