package settings

import (
	"github.com/fermata-go/fermata/internal/language"
	"github.com/fermata-go/fermata/internal/web/page"
)

// languageChoice is a language of the pages. The one without a code is that of the browser.
type languageChoice struct {
	Code, Name string
	Current    bool
}

func languagesOf(v *page.Visit) []languageChoice {
	chosen := language.Chosen(v.Request)
	list := []languageChoice{{"", v.T("language.browser"), chosen == ""}}
	for _, code := range language.All {
		list = append(list, languageChoice{code, v.Shell.Config.Languages[code].Text("language.name"), chosen == code})
	}
	return list
}

func chooseLanguage(v *page.Visit) (page.Response, error) {
	v.SetLanguage(v.FormValue("language"))
	return page.Redirect{To: "/me", Note: "note.language"}, nil
}
