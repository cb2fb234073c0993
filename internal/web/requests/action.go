package requests

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/schemaform"
	"github.com/fermata-go/fermata/internal/web/fields"
	"github.com/fermata-go/fermata/internal/web/page"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// actionForm is the data of the page of one action on a request. It keeps everything that was
// typed.
type actionForm struct {
	*Model
	Act string
	// Key is the idempotency key: the same form has the same effect once.
	Key string
	// SeenShown and SeenRendering are the digest of the request that the form was made for, and the
	// hash of what the page showed of it.
	SeenShown, SeenRendering string
	// Visible is how much of the question was on the screen, as a script observed it.
	Visible string
	// List is the list that the request was opened from; nil if it was opened from elsewhere.
	List *List

	Text, To, Code, Span, Uses string
	// Typed is the name of the object as the person typed it.
	Typed string
	// OnlyIf and Until are the conditions of an approval: an expression, and a time as the form
	// sends it.
	OnlyIf, Until string
	// Bounds are the arguments of an approval to remember, with what may differ.
	Bounds []bound

	Form   fields.Field
	root   *schemaform.Field
	Mode   string // "form" or "json"
	Raw    string
	Diff   []diffRow
	Policy *editPolicy // about the differences
	Answer json.RawMessage

	// Confirm are the arguments that the approver must confirm one by one.
	Confirm   []Arg
	Confirmed map[string]bool

	// Then says what the action causes.
	Then string

	Problem *api.Problem
	// StepUp leads to the sign-in page, if the request needs a stronger authentication.
	StepUp string
	Error  string
	// Changed reports that the request has changed since the form was made.
	Changed bool
	// Held reports that the decision waits for the end of its undo window.
	Held bool
}

// action is something that people do with a request.
type action struct {
	name, key string
	// offered reports whether the menu shows the action.
	offered func(m *Model, v *page.Visit) bool
	// do applies the action. It returns the key of a note.
	do func(s *Pages, v *page.Visit, f *actionForm) (note string, err error)
}

func always(m *Model, _ *page.Visit) bool { return true }

func verb(name string) func(*Model, *page.Visit) bool {
	return func(m *Model, _ *page.Visit) bool { return m.Eligible() && m.Allows(name) }
}

// decisions are the actions of the decision bar.
var decisions = []action{
	{name: "approve", do: decideWith(approveAnswer)},
	{name: "reject", do: decideWith(rejectAnswer)},
	{name: "edit", do: decideWith(editAnswer)},
	{name: "respond", do: decideWith(respondAnswer)},
	{name: "ask", do: act(client.ActionClarify)},
}

// menu are the other actions, in the order of the menu.
var menu = []action{
	{"comment", "c", always, act(client.ActionComment)},
	{"claim", "", func(m *Model, v *page.Visit) bool {
		return verb("claim")(m, v) && (m.Activity == nil || m.Activity.Claim == nil)
	}, act(client.ActionClaim)},
	{"release", "", func(m *Model, v *page.Visit) bool {
		return m.Activity != nil && m.Activity.Claim != nil && m.Activity.Claim.By == v.Me.Principal
	}, act(client.ActionRelease)},
	{"undo", "", func(m *Model, v *page.Visit) bool {
		return m.Activity != nil && m.Activity.Pending != nil && m.Activity.Pending.By == v.Me.Principal
	}, act(client.ActionUndo)},
	{"delegate", "", verb("delegate"), act(client.ActionDelegate)},
	{"snooze", "", offersSpan("snooze", requirement.VerbSnooze), act(client.ActionSnooze)},
	{"extend", "", offersSpan("extend", requirement.VerbExtend), act(client.ActionExtend)},
	{"escalate", "", func(m *Model, v *page.Visit) bool { return verb("escalate")(m, v) && !m.returns() }, act(client.ActionEscalate)},
	{"return", "", func(m *Model, _ *page.Visit) bool { return m.Eligible() && m.returns() }, decideWith(returnAnswer)},
	{"remember", "", func(m *Model, _ *page.Visit) bool { return m.Approval != nil && m.Eligible() && m.Allows("approve") }, approveAndRemember},
	{"reveal", "", func(m *Model, _ *page.Visit) bool { return len(m.Masked) > 0 }, nil},
	{"cancel", "", verb("abandon"), act(client.ActionAbandon)},
}

func findAction(name string) (action, bool) {
	all := slices.Concat(decisions, menu)
	i := slices.IndexFunc(all, func(a action) bool { return a.name == name })
	if i < 0 {
		return action{}, false
	}
	return all[i], true
}

// showAction shows the form of an action.
func (s *Pages) showAction(v *page.Visit) (page.Response, error) {
	f, _, err := s.newActionForm(v)
	if err != nil {
		return nil, err
	}
	return f.page(v, http.StatusOK), nil
}

// page shows the form, as a part of a page if a script asks for it.
func (f *actionForm) page(v *page.Visit, status int) page.Response {
	if f.root != nil {
		errs := f.Form.Errors
		f.setForm(errs)
	}
	if v.URL.Query().Has("fragment") || v.PostForm.Has("fragment") {
		return page.Fragment{Name: "action", Part: "action", Status: status, Data: f}
	}
	return page.Page{Name: "action", Title: strings.TrimSuffix(v.T("act."+f.Act), "…"), Nav: "/inbox", Status: status, Scripts: []string{"request.js"}, Data: f}
}

// newActionForm reads the request and what the form of a page sent. A link sets no value: its
// author would decide with the hand of the person who opens it.
func (s *Pages) newActionForm(v *page.Visit) (*actionForm, action, error) {
	a, ok := findAction(v.PathValue("act"))
	if !ok {
		return nil, a, page.ErrNotFound
	}
	r, err := v.API.Request(v.Context(), v.PathValue("id"))
	if err != nil {
		return nil, a, err
	}
	m, err := s.Model(v, r)
	if err != nil {
		return nil, a, err
	}
	form := v.PostForm
	f := &actionForm{
		Model: m, Act: a.name, Key: cmp.Or(form.Get(page.IdempotencyName), client.NewID()), List: readList(v.Form),
		Text: strings.TrimSpace(strings.ReplaceAll(form.Get("text"), "\r\n", "\n")), To: strings.TrimSpace(form.Get("to")), Code: form.Get("code"), Span: form.Get("span"), Uses: form.Get("uses"), Typed: form.Get("typed"), OnlyIf: strings.TrimSpace(form.Get("onlyif")), Until: form.Get("until"),
		Mode: cmp.Or(form.Get("mode"), "form"), Raw: strings.ReplaceAll(form.Get("raw"), "\r\n", "\n"), Confirmed: make(map[string]bool),
	}
	if all := form.Get("visible"); all == "all" || all == "part" {
		f.Visible = all
	}
	if f.SeenShown, f.SeenRendering, err = seen(v, m); err != nil {
		return nil, a, err
	}
	for _, pointer := range form["confirm"] {
		f.Confirmed[pointer] = true
	}
	f.Then = m.thenText(v, a.name)
	f.build(v.Texts)
	if v.Method == http.MethodPost && f.root != nil {
		f.setForm(nil)
		f.Form.Fill(form)
	}
	if f.root != nil {
		f.setForm(nil)
	}
	if a.name == "remember" {
		f.Bounds = f.bounds(form)
	}
	return f, a, nil
}

// seen returns the digest of the request and the hash of its rendering that the person saw: those
// that the form says, or those of the page that is made now.
func seen(v *page.Visit, m *Model) (shown, rendering string, err error) {
	if v.Method != http.MethodPost {
		return m.Shown, m.Rendering().Hash, nil
	}
	if !v.PostForm.Has("shown") || !v.PostForm.Has("rendering") {
		return "", "", &api.Problem{Status: http.StatusBadRequest, Code: "bad_request", Title: http.StatusText(http.StatusBadRequest), Detail: v.T("error.incomplete")}
	}
	return v.PostForm.Get("shown"), v.PostForm.Get("rendering"), nil
}

// setForm sets the data of the generated form.
func (f *actionForm) setForm(errs schemaform.Errors) {
	f.Form = fields.Of(f.root, errs)
	if f.Act == "edit" && f.Activity != nil && len(f.Activity.Editable) > 0 {
		f.Form.Editable, f.Form.Limited = f.Activity.Editable, true
	}
}

// ShowsBody reports whether the form itself shows the question.
func (f *actionForm) ShowsBody() bool {
	return slices.Contains([]string{"approve", "remember"}, f.Act)
}

// build makes the generated form, and lists what must be confirmed.
func (f *actionForm) build(texts texts.Translation) {
	switch {
	case f.Act == "respond":
		f.root = schemaform.New(f.answerFormSchema(texts), nil)
	case f.Act == "edit" && f.Approval != nil:
		f.root = schemaform.New(f.Approval.ArgsSchema, f.currentArgs())
	case f.Act == "edit":
		f.root = schemaform.New(nil, f.Data)
	case f.Act == "approve" || f.Act == "remember":
		f.Confirm = unusual(f.Args)
	}
}

// unusual returns the arguments that an approver must confirm one by one.
func unusual(args []Arg) []Arg {
	return slices.DeleteFunc(slices.Clone(args), func(a Arg) bool { return a.Flags == 0 && !a.Masked })
}

// unconfirmed returns the pointers of the arguments that were not confirmed.
func (f *actionForm) unconfirmed() (pointers []string) {
	for _, a := range f.Confirm {
		if !f.Confirmed[a.Pointer] {
			pointers = append(pointers, cmp.Or(a.Pointer, "/"))
		}
	}
	return pointers
}

// setOp begins the value of a button of the request page that opens a form with an answer, such as
// set /action="approve".
const setOp = "set "

// preset selects the answer of a button.
func (f *actionForm) preset(set string) {
	pointer, value, ok := strings.Cut(set, "=")
	if !ok || f.root == nil || !json.Valid([]byte(value)) {
		return
	}
	if field := f.root.Find(pointer); field != nil && (field.Kind == schemaform.Choice || field.Kind == schemaform.Boolean) {
		field.Set(json.RawMessage(value))
		f.setForm(nil)
	}
}

// takeAction applies an action, or shows its form again.
func (s *Pages) takeAction(v *page.Visit) (page.Response, error) {
	f, a, err := s.newActionForm(v)
	if err != nil {
		return nil, err
	}
	if a.name == "reveal" {
		return s.reveal(v, f)
	}
	same := f.SeenShown == f.Shown && f.SeenRendering == f.Rendering().Hash
	if same && !f.Open() && f.decides() {
		if note, err := a.do(s, v, f); err == nil { // the same form again
			return page.Redirect{To: f.back(), Note: note}, nil
		}
	}
	if !same || !f.Open() {
		f.Changed = true
		return f.page(v, http.StatusConflict), nil
	}
	if op := v.PostForm.Get(fields.OpName); op != "" && op != "send" && f.root != nil {
		f.change(v, op)
		return f.page(v, http.StatusOK), nil
	}
	if f.Act == "edit" && f.Approval != nil {
		if value, err := f.value(); err == nil {
			f.Confirm = unusual(argsOf(value, nil, nil))
		}
	}
	if f.Types() && f.Act != "edit" && strings.TrimSpace(f.Typed) != f.ConfirmText() {
		f.Error = v.T("action.mistyped", f.ConfirmText())
		return f.page(v, http.StatusUnprocessableEntity), nil
	}
	if missing := f.unconfirmed(); len(missing) > 0 {
		f.Error = v.T("action.unconfirmed", strings.Join(missing, ", "))
		return f.page(v, http.StatusUnprocessableEntity), nil
	}
	note, err := a.do(s, v, f)
	if err == nil {
		return page.Redirect{To: f.back(), Note: note}, nil
	}
	return f.refused(v, err)
}

// refused shows the form again with what is wrong.
func (f *actionForm) refused(v *page.Visit, err error) (page.Response, error) {
	if invalid, ok := errors.AsType[schemaform.Errors](err); ok {
		f.Form.Errors, f.Error = invalid, v.T("action.invalid")
		return f.page(v, http.StatusUnprocessableEntity), nil
	}
	if missing, ok := errors.AsType[*missingError](err); ok {
		f.Error = v.T(missing.key)
		return f.page(v, http.StatusUnprocessableEntity), nil
	}
	p := page.ProblemOf(err)
	if p.Status == http.StatusUnauthorized || p == page.ErrInternal {
		return nil, err
	}
	if f.Problem = v.LocalProblem(p); p.Code == "not_confirmed" {
		f.Problem, f.Error = nil, v.T("action.mistypededit")
	}
	if p.Code == "stronger_auth_required" {
		f.StepUp = f.stepUpURL()
	}
	return f.page(v, p.Status), nil
}

// back returns the page after the action.
func (f *actionForm) back() string {
	switch {
	case f.List == nil:
		return "/requests/" + url.PathEscape(f.ID)
	case f.Held || !f.decides():
		return f.List.Href("id", f.ID)
	}
	return f.List.Href("after", f.ID)
}

// decides reports whether the action is a decision.
func (f *actionForm) decides() bool {
	return slices.Contains([]string{"approve", "reject", "edit", "respond", "return", "remember"}, f.Act)
}

// change applies a button that changes the form and sends nothing.
func (f *actionForm) change(v *page.Visit, op string) {
	switch op {
	case "json":
		if value, err := f.root.Value(); err == nil && value != nil {
			f.Raw = indented(value)
		} else if f.Raw == "" {
			f.Raw = indented(f.root.Original())
		}
		f.Mode = "json"
	case "form":
		if json.Valid([]byte(f.Raw)) {
			f.root.Set(json.RawMessage(f.Raw))
			f.Mode = "form"
		} else {
			f.Error = v.T("action.badjson")
		}
	case "preview":
		f.preview(v)
	default:
		if answer, ok := strings.CutPrefix(op, setOp); ok {
			f.preset(answer)
			return
		}
		fields.Change(f.root, op)
	}
}

// preview shows the differences to the requested arguments.
func (f *actionForm) preview(v *page.Visit) {
	value, err := f.value()
	if invalid, ok := errors.AsType[schemaform.Errors](err); ok {
		f.Form.Errors, f.Error = invalid, v.T("action.invalid")
		return
	}
	f.Diff = diffOf(f.root.Original(), value)
	switch {
	case len(f.Diff) == 0:
		f.Error = v.T("action.nochange")
	case f.Approval != nil:
		f.Policy = policyOfEdit(v, f.Model, value)
	}
}

// value returns the value of the form or of the JSON text.
func (f *actionForm) value() (json.RawMessage, error) {
	if f.Mode == "json" {
		raw := json.RawMessage(f.Raw)
		if err := f.root.Check(raw); err != nil {
			if invalid, ok := errors.AsType[schemaform.Errors](err); ok {
				return nil, invalid
			}
			return nil, schemaform.Errors{{Message: err.Error()}}
		}
		return raw, nil
	}
	return f.root.Value()
}

// missingError says which input is missing: the key of a text.
type missingError struct{ key string }

func (e *missingError) Error() string { return "web: " + e.key }
