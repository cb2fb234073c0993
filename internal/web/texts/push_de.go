package texts

// pushGerman are the German texts of push.go.
var pushGerman = Translation{
	"push.title":       "Benachrichtigungen im Browser",
	"push.lead":        "Eine Benachrichtigung zeigt, worum es geht. Ein Klick öffnet die Anfrage; dort entscheiden Sie.",
	"push.switch":      "Diesen Browser benachrichtigen",
	"push.here":        "Dieser Browser",
	"push.added":       "hinzugefügt",
	"push.remove":      "Entfernen",
	"push.remove.one":  "%s entfernen",
	"push.script":      "Benachrichtigungen brauchen JavaScript.",
	"push.insecure":    "Browser erlauben Benachrichtigungen nur für https-Adressen.",
	"push.unsupported": "Dieser Browser kennt keine Benachrichtigungen. Auf einem iPhone oder iPad legen Sie Fermata auf den Home-Bildschirm und öffnen es dort.",
	"push.blocked":     "Benachrichtigungen dieser Website sind blockiert. Erlauben Sie sie in den Einstellungen Ihres Browsers und laden Sie diese Seite neu.",
	"push.failed":      "Der Browser konnte Benachrichtigungen nicht einschalten. Vielleicht ist sein Push-Dienst nicht erreichbar; versuchen Sie es noch einmal.",
	"push.fallback":    "In Ihrem Eingang gibt es Neues",

	"note.pushon":  "Dieser Browser wird benachrichtigt.",
	"note.pushoff": "Der Browser wird nicht mehr benachrichtigt.",
}
