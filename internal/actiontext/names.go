package actiontext

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-go/fermata/internal/money"
)

// The size up to which a value and a name fit into a phrase, in characters.
const (
	maxValue = 48
	maxName  = 24
)

// arg is a short argument: a text, a number or true.
type arg struct {
	name, title, text string
	// money reports that the text is an amount with its currency, which currencyField has if the
	// schema has not.
	money         bool
	currencyField string
}

// label returns the name in lower case as words, without a final "id": "orderId" is "order".
func (a arg) label() string {
	words := splitWords(a.name)
	if len(words) > 1 && words[len(words)-1] == "id" {
		words = words[:len(words)-1]
	}
	return strings.Join(words, " ")
}

// shownLabel returns the title of the argument, or its label.
func (a arg) shownLabel() string {
	if a.title != "" {
		return a.title
	}
	return a.label()
}

// shortArgs returns the arguments that fit into a phrase, in their order.
func shortArgs(action Action) (args []arg) {
	var schema struct {
		Properties map[string]struct {
			Title string `json:"title"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(action.Schema, &schema) // a schema without properties has no titles
	amounts := money.FieldsOf(action.Schema)
	var members map[string]json.RawMessage
	_ = json.Unmarshal(action.Args, &members) // of anything else there are no arguments
	d := json.NewDecoder(bytes.NewReader(action.Args))
	d.UseNumber()
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return args
		}
		a := arg{name: name.(string)} // the decoder accepts no other names
		if title := schema.Properties[a.name].Title; fits(title, maxName) {
			a.title = title
		}
		text, ok := scalar(value)
		if field := amounts.CurrencyField(a.name); field == "" || !isMasked(field, action.Masked) {
			if amount, is := amounts.Format(a.name, value, members, action.Language); is {
				text, a.money, a.currencyField = amount, true, field
			}
		}
		if a.text = text; !ok || !fits(text, maxValue) || !fits(a.name, maxName) || a.label() == "" || isMasked(a.name, action.Masked) {
			continue
		}
		args = append(args, a)
	}
	return args
}

// scalar returns a text, a number or true.
func scalar(value json.RawMessage) (text string, ok bool) {
	switch {
	case len(value) == 0:
		return "", false
	case value[0] == '"':
		return text, json.Unmarshal(value, &text) == nil
	case value[0] == '-' || value[0] >= '0' && value[0] <= '9' || string(value) == "true":
		return string(value), true
	}
	return "", false
}

func fits(text string, limit int) bool {
	return strings.TrimSpace(text) != "" && utf8.RuneCountInString(text) <= limit && !strings.ContainsAny(text, "\n\r")
}

func isMasked(name string, masked []string) bool {
	pointer := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	return slices.ContainsFunc(masked, func(m string) bool { return m == pointer || m == "" || strings.HasPrefix(m, pointer+"/") })
}

// splitName splits the name of a tool into a verb, its object, and the namespace of the tool. The
// verb is "" if the name does not begin with a known one.
func splitName(name string) (verb, object, space string) {
	if !fits(name, 2*maxName) || strings.ContainsFunc(name, notName) {
		return "", "", ""
	}
	base := name
	if i := strings.LastIndexAny(name, "./:"); i >= 0 {
		space, base = name[:i], name[i+1:]
	} else if i := strings.LastIndex(name, "__"); i >= 0 {
		space, base = strings.TrimPrefix(name[:i], "mcp__"), name[i+2:]
	}
	words := splitWords(base)
	if len(words) == 0 {
		return "", "", ""
	}
	first, known := verbs[words[0]]
	if !known {
		return "", "", ""
	}
	if first == "" {
		first = words[0]
	}
	return first, strings.Join(words[1:], " "), space
}

func notName(r rune) bool {
	return r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./: ", r)
}

// Label returns the name of an argument or a field as words in lower case: "legalName" is "legal
// name". A name that is one word, or has other characters than letters, digits and separators, is
// returned as it is.
func Label(name string) string {
	words := splitWords(name)
	if len(words) < 2 || strings.ContainsFunc(name, notName) {
		return name
	}
	return strings.Join(words, " ")
}

// splitWords splits a name at separators and before upper-case letters, in lower case.
func splitWords(name string) (words []string) {
	start, previous := -1, rune(0)
	end := func(i int) {
		if start >= 0 {
			words = append(words, strings.ToLower(name[start:i]))
		}
		start = -1
	}
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end(i)
		case start < 0:
			start = i
		case unicode.IsUpper(r) && unicode.IsLower(previous):
			end(i)
			start = i
		}
		previous = r
	}
	end(len(name))
	return words
}

// verbs are words that tool names begin with, and how they are written if that differs.
var verbs = map[string]string{
	"add": "", "apply": "", "approve": "", "archive": "", "assign": "", "attach": "", "block": "", "book": "", "buy": "", "call": "", "cancel": "",
	"change": "", "charge": "", "clear": "", "close": "", "configure": "", "copy": "", "create": "", "deactivate": "", "delete": "", "deploy": "",
	"disable": "", "drop": "", "edit": "", "enable": "", "execute": "", "exec": "execute", "export": "", "fetch": "", "forward": "", "get": "",
	"grant": "", "hire": "", "import": "", "insert": "", "install": "", "invite": "", "invoke": "", "issue": "", "kill": "", "launch": "", "lock": "",
	"merge": "", "migrate": "", "modify": "", "move": "", "notify": "", "open": "", "order": "", "pause": "", "pay": "", "payout": "pay out", "place": "",
	"post": "", "print": "", "promote": "", "publish": "", "purchase": "", "purge": "", "push": "", "query": "", "read": "", "reboot": "", "refund": "",
	"register": "", "reject": "", "release": "", "remove": "", "rename": "", "renew": "", "replace": "", "reset": "", "resize": "", "restart": "",
	"restore": "", "resume": "", "revoke": "", "rm": "remove", "rollback": "roll back", "rotate": "", "run": "", "save": "", "scale": "", "schedule": "",
	"sell": "", "send": "", "set": "", "share": "", "ship": "", "sign": "", "start": "", "stop": "", "submit": "", "suspend": "", "terminate": "",
	"transfer": "", "truncate": "", "unblock": "", "uninstall": "", "unlock": "", "update": "", "upgrade": "", "upload": "", "withdraw": "", "write": "",
}

// prepositions of arguments.
var prepositions = map[string]string{
	"order": "on", "invoice": "on", "booking": "on", "subscription": "on", "ticket": "on", "contract": "on",
	"to": "to", "recipient": "to", "supplier": "to", "payee": "to", "vendor": "to", "destination": "to",
	"customer": "for", "user": "for", "employee": "for", "patient": "for", "from": "from", "source": "from",
}

// selfEvident are labels that the preposition makes unnecessary.
var selfEvident = map[string]bool{"recipient": true, "destination": true, "source": true, "customer": true, "supplier": true, "payee": true}

// environments are names of the argument that says where an action happens.
var environments = map[string]bool{"env": true, "environment": true, "stage": true}
