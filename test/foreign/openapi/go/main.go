// Command openapi reads an error with the type that oapi-codegen generates.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"presign.test/openapi/api"
)

// Every refusal of every operation has this type.
func read(refused *api.Error) {
	problems := 0
	if refused.Error.Problems != nil {
		problems = len(*refused.Error.Problems)
	}
	violations := refused.Error.AdditionalProperties["violations"]
	fmt.Println(refused.Error.Code, *refused.Error.Param, problems, violations)
}

func main() {
	answer := api.PresignResponse{}
	if err := json.NewDecoder(os.Stdin).Decode(&answer.JSON400); err != nil {
		panic(err)
	}
	read(answer.JSON400)
}
