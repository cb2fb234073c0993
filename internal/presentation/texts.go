package presentation

import "github.com/fermata-go/fermata/internal/language"

// textTable has the words of a language by what they mean in English.
type textTable map[string]string

func texts(lang string) textTable {
	if lang == language.German {
		return german
	}
	return english
}

var english = textTable{
	"an agent": "an agent", "agent": "agent",
	"wants to": "wants to", "asks": "asks:", "asks for an answer": "asks for an answer:",
	"waits for approval": "waits for approval:",
	"is held":            "is held", "is held until": "is held until a person lets it continue",
	"is held before": "is held before", "is held after": "is held after", "after": "after",
	"did it happen": "Did it happen?", "in doubt": "It is not known whether this was done:",
	"idempotency key": "idempotency key", "environment": "environment", "stated": "stated by the agent", "error": "error", "gate": "gate", "what": "to approve",
	"target": "Current state of the target", "asked again because": "Asked again because",
	"removed": "(removed)", "answers": "answers",
	"approve": "Approve", "edit": "Edit…", "reject": "Reject…", "answer": "Answer…",
	"happened": "It happened", "happened detail": "The run continues, and nothing is done again.",
	"not happened": "It did not happen", "not happened detail": "It is done now.",
	"return": "Return for redesign…", "return detail": "The agent gets your reason and plans again. It is neither approved nor rejected.",
	"escalate": "Escalate", "ask": "Ask the agent…",
	"why": "Why? The agent reads it.", "what to change": "What should be different? The agent reads it.", "question": "Your question", "reason code": "Reason code",
	"phrase run": "run", "phrase on": "on", "phrase to": "to", "phrase for": "for", "phrase from": "from",
}

var german = textTable{
	"an agent": "ein Agent", "agent": "Agent",
	"wants to": "möchte:", "asks": "fragt:", "asks for an answer": "bittet um eine Antwort:",
	"waits for approval": "wartet auf Freigabe:",
	"is held":            "ist angehalten", "is held until": "ist angehalten, bis ein Mensch die Fortsetzung freigibt",
	"is held before": "ist angehalten vor", "is held after": "ist angehalten nach", "after": "nach",
	"did it happen": "Ist es geschehen?", "in doubt": "Es ist nicht bekannt, ob das ausgeführt wurde:",
	"idempotency key": "Idempotenzschlüssel", "environment": "Umgebung", "stated": "laut Agent", "error": "Fehler", "gate": "Freigabepunkt", "what": "freizugeben",
	"target": "Aktueller Zustand des Ziels", "asked again because": "Erneut gefragt, weil",
	"removed": "(entfernt)", "answers": "antwortet",
	"approve": "Freigeben", "edit": "Bearbeiten…", "reject": "Ablehnen…", "answer": "Antworten…",
	"happened": "Es ist geschehen", "happened detail": "Der Lauf geht weiter, und nichts wird noch einmal ausgeführt.",
	"not happened": "Es ist nicht geschehen", "not happened detail": "Es wird jetzt ausgeführt.",
	"return": "Zur Überarbeitung zurückgeben…", "return detail": "Der Agent erhält Ihre Begründung und plant neu. Es ist weder freigegeben noch abgelehnt.",
	"escalate": "Eskalieren", "ask": "Den Agenten fragen…",
	"why": "Warum? Der Agent liest es.", "what to change": "Was soll anders sein? Der Agent liest es.", "question": "Ihre Frage", "reason code": "Grund",
	"phrase run": "Aktion", "phrase on": "zu", "phrase to": "an", "phrase for": "für", "phrase from": "von",
}
