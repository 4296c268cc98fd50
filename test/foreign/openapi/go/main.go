// Command openapi reads an error, and issues and lists a URL, with the types and the client that oapi-codegen generates.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Issues a URL and finds it in the list of sessions.
func call(url string, key string) {
	withKey := api.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("authorization", "Bearer "+key)
		return nil
	})
	client := must(api.NewClientWithResponses(url, withKey))
	secret, uses, user := "sk-any", 3, "go"
	body := api.PresignRequest{Provider: "openai", ClientApiKey: &secret, MaxUses: &uses, ExternalUser: &user}
	if err := body.Path.FromPresignRequestPath0("/v1/chat/completions"); err != nil {
		panic(err)
	}
	issued := must(client.PresignWithResponse(context.Background(), nil, body)).JSON200
	listed := must(client.ListSessionsWithResponse(context.Background(), &api.ListSessionsParams{ExternalUser: &user}))
	fmt.Println(len(listed.JSON200.Data), listed.JSON200.Data[0].Id == issued.SessionId)
}

func main() {
	if len(os.Args) > 2 {
		call(os.Args[1], os.Args[2])
		return
	}
	answer := api.PresignResponse{}
	if err := json.NewDecoder(os.Stdin).Decode(&answer.JSON400); err != nil {
		panic(err)
	}
	read(answer.JSON400)
}
