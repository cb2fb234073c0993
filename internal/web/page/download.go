package page

import (
	"encoding/csv"
	"net/http"
	"slices"
)

// CSV is a download of a table.
type CSV struct {
	Name string
	Rows [][]string
}

func (f CSV) Write(v *Visit) error {
	h := v.W.Header()
	setPageHeaders(h, "")
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+f.Name+`"`)
	v.W.WriteHeader(http.StatusOK)
	w := csv.NewWriter(v.W)
	for _, row := range f.Rows {
		for i, cell := range row {
			row[i] = plainCell(cell)
		}
		_ = w.Write(row) // a disconnected client does not read it
	}
	w.Flush()
	return nil
}

// plainCell returns a cell that a spreadsheet does not take for a formula.
func plainCell(cell string) string {
	if cell != "" && slices.Contains([]byte("=+-@\t\r"), cell[0]) {
		return "'" + cell
	}
	return cell
}

// Download is a file.
type Download struct {
	Name, Type string
	Body       []byte
}

func (d Download) Write(v *Visit) error {
	SetDownloadHeaders(v.W.Header(), d.Name, d.Type)
	v.W.WriteHeader(http.StatusOK)
	_, _ = v.W.Write(d.Body) // a disconnected client does not read it
	return nil
}

// SetDownloadHeaders sets the headers of a download with a file name.
func SetDownloadHeaders(h http.Header, name, mediaType string) {
	setPageHeaders(h, "")
	h.Set("Content-Type", mediaType)
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
}
