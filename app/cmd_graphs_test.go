package app

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/golden"
)

func TestGraphs_ListedAndDrawn(t *testing.T) {
	call := demo(t, t.TempDir())
	if code, _, errOut := call("run", "inproc:content-review", `{"topic":"tea"}`, "--key", "article-7"); code != exitOK {
		t.Fatal(errOut)
	}
	_, picture, _ := call("graphs", "--run", "article-7", "--as", "svg")
	golden.Compare(t, "../docs/content-review.svg", picture) // the documentation shows it
	for what, c := range map[string]struct {
		args []string
		exit int
		says string
	}{
		"all of them":       {[]string{"graphs"}, exitOK, "inproc:content-review"},
		"one":               {[]string{"graphs", "inproc:content-review"}, exitOK, "human_review → "},
		"where a run waits": {[]string{"graphs", "--run", "article-7"}, exitOK, "human_review (waits) → "},
		"to look at":        {[]string{"graphs", "--run", "article-7", "--as", "svg"}, exitOK, "which waits at human_review"},
		"for a document":    {[]string{"graphs", "inproc:content-review", "--as", "mermaid"}, exitOK, "flowchart TD\n"},
		"no such graph":     {[]string{"graphs", "inproc:nothing"}, exitNotFound, "Try: fermata graphs"},
		"no such run":       {[]string{"graphs", "--run", "nothing"}, exitNotFound, "fermata runs"},
		"an empty graph":    {[]string{"graphs", ""}, exitUsage, "empty"},
		"an empty run":      {[]string{"graphs", "--run", ""}, exitUsage, "empty"},
		"two forms":         {[]string{"graphs", "--run", "article-7", "--as", "svg", "--json"}, exitUsage, "--json"},
		"nothing to draw":   {[]string{"graphs", "external:request"}, exitOK, "no drawing available"},
		"nothing to render": {[]string{"graphs", "external:request", "--as", "svg"}, exitNotFound, "no drawing available"},
		"both":              {[]string{"graphs", "inproc:content-review", "--run", "article-7"}, exitUsage, "either"},
		"a picture of all":  {[]string{"graphs", "--as", "svg"}, exitUsage, "needs a graph"},
		"an unknown format": {[]string{"graphs", "inproc:content-review", "--as", "png"}, exitUsage, "text"},
	} {
		if exit, out, errOut := call(c.args...); exit != c.exit || !strings.Contains(out+errOut, c.says) {
			t.Errorf("%s: %d\n%s%s", what, exit, out, errOut)
		}
	}
	var list []api.Graph
	if _, out, _ := call("graphs", "--json"); json.Unmarshal([]byte(out), &list) != nil || len(list) < 2 || list[0].Drawing != nil {
		t.Errorf("%s", out)
	}
	var one api.Graph
	if _, out, _ := call("graphs", "--run", "article-7", "--json"); json.Unmarshal([]byte(out), &one) != nil || one.Drawing == nil || one.ID != "inproc:content-review" {
		t.Errorf("%s", out)
	}
}
