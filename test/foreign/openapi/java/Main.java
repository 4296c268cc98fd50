import com.fasterxml.jackson.databind.ObjectMapper;
import presign.ApiClient;
import presign.api.IssuingApi;
import presign.api.SessionsApi;
import presign.model.Error;
import presign.model.PresignRequest;

/** Reads an error, and issues and lists a URL, with the types and the client that openapi-generator makes. */
class Main {
  public static void main(String[] args) throws Exception {
    if (args.length > 1) call(args[0], args[1]);
    else read(new ObjectMapper().readValue(System.in, Error.class));
  }

  /** Every refusal of every operation has this type. */
  static void read(Error refused) {
    var error = refused.getError();
    var violations = error.getAdditionalProperty("violations");
    System.out.println(error.getCode() + " " + error.getParam() + " " + error.getProblems().size() + " " + violations);
  }

  static void call(String url, String key) {
    var client = new ApiClient().setBasePath(url);
    client.setBearerToken(key);
    var body = new PresignRequest().provider("openai").path("/v1/chat/completions").clientApiKey("sk-any").maxUses(3).externalUser("java");
    var issued = new IssuingApi(client).presign(body, null);
    var listed = new SessionsApi(client).listSessions(null, null, null, "java", null, null).getData();
    System.out.println(listed.size() + " " + listed.get(0).getId().equals(issued.getSessionId()));
  }
}
