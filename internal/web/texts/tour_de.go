package texts

// tourGerman are the German texts of tour.go.
var tourGerman = Translation{
	"tour.title":      "Zum Ausprobieren",
	"tour.close":      "Rundgang schließen",
	"tour.edit":       "Öffnen Sie eine Erstattung, senken Sie den Betrag und genehmigen Sie sie.",
	"tour.edit.link":  "Erstattungen",
	"tour.batch":      "Entscheiden Sie die ähnlichen Erstattungen zusammen. Die große bleibt außen vor.",
	"tour.ask":        "Fragen Sie bei einem Agenten nach. Seine Antwort erscheint, während Sie warten.",
	"tour.run":        "Starten Sie selbst einen Lauf und beantworten Sie seine Frage.",
	"tour.run.link":   "Content review",
	"tour.audit":      "Suchen Sie Ihre Entscheidung im Audit-Protokoll.",
	"tour.audit.link": "Audit",
	"tour.keys":       "Die Beispielagenten fragen laufend Neues. Mit ? sehen Sie die Tasten.",
}
