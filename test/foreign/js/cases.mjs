/** Runs the cases of the environment variable CASES, and prints one line of JSON for each: its answer, or its error. */
export async function run(does) {
  for (const { name, do: action, url, retries } of JSON.parse(process.env.CASES)) {
    const line = { case: name };
    try {
      line.answer = await does[action](url, retries);
    } catch (error) {
      line.error = shown(error);
    }
    console.log(JSON.stringify(line));
  }
  // Some clients keep their connections open.
  process.exit(0);
}

/** The fields of an error that a program reads. */
function shown(error) {
  const { name, message, status, statusCode, code, body } = error;
  const fields = [status, statusCode, code, JSON.stringify(body)].filter((field) => field !== undefined);
  return { type: name, text: message, fields: fields.join(' ') };
}
