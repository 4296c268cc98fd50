// Package cases runs the cases of the environment variable CASES, and prints one line of JSON for each: its answer, or its error.
package cases

import (
	"encoding/json"
	"fmt"
	"os"
)

type oneCase struct {
	Name    string `json:"name"`
	Do      string `json:"do"`
	URL     string `json:"url"`
	Retries bool   `json:"retries"`
}

type shown struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Fields string `json:"fields"`
}

type line struct {
	Case   string `json:"case"`
	Answer string `json:"answer,omitempty"`
	Error  *shown `json:"error,omitempty"`
}

// Does is what a program can do with a URL, by name.
type Does map[string]func(url string, retries bool) (string, error)

// Fields prints the fields of an error that a program reads. Without it, they are the error's text.
var Fields func(error) string

func fields(err error) string {
	if Fields == nil {
		return err.Error()
	}
	return Fields(err)
}

// Run runs each case by the function that it names.
func Run(does Does) {
	var list []oneCase
	if err := json.Unmarshal([]byte(os.Getenv("CASES")), &list); err != nil {
		panic(err)
	}
	for _, each := range list {
		out := line{Case: each.Name}
		answer, err := does[each.Do](each.URL, each.Retries)
		if err != nil {
			out.Error = &shown{fmt.Sprintf("%T", err), err.Error(), fields(err)}
		} else {
			out.Answer = answer
		}
		text, _ := json.Marshal(out)
		fmt.Println(string(text))
	}
}
