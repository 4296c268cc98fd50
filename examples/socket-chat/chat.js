/** A chat over one socket. The page runs this as it stands. */
export class Chat {
  #url;
  /** @type {WebSocket | undefined} */
  #socket;
  /** @type {string | undefined} */
  #previous;

  /** @param {string} url what the backend issued */
  constructor(url) {
    this.#url = url;
  }

  /**
   * Asks the model. A turn sends only what is new: `previous_response_id` stands for the conversation before it.
   * @param {string} input
   * @param {(piece: string) => void} onPiece gets the answer piece by piece
   */
  async ask(input, onPiece) {
    // A gateway that stops closes its sockets after the turn under way. One that refuses a socket opens it, sends the reason, and closes it.
    const last = this.#socket?.readyState === WebSocket.OPEN ? this.#socket : undefined;
    const socket = last ?? new WebSocket(this.#url.replace(/^http/, 'ws'));
    this.#socket = socket;
    const over = new Promise((resolve, reject) => {
      socket.onmessage = ({ data }) => {
        const { type, delta, response, error } = JSON.parse(data);
        if (type === 'response.output_text.delta') onPiece(delta);
        if (type === 'error') reject(new Error(error.message));
        if (LAST.includes(type)) resolve(response.id);
      };
      socket.onerror = () => reject(new Error('The gateway was not reached.'));
      socket.onclose = ({ code, reason }) => reject(new Error(`The socket closed: ${reason || code}`));
    });
    const turn = { type: 'response.create', input, previous_response_id: this.#previous };
    const send = () => socket.send(JSON.stringify(turn));
    if (last) send();
    else socket.onopen = send;
    this.#previous = await over;
  }

  /**
   * What the URL allows, and what was used. To ask costs no use.
   * @returns {Promise<{ max_uses: number, used: number, cost_limit: number, spent: number }>}
   */
  async left() {
    const answer = await fetch(this.#url.replace('/v1/responses', ''));
    const status = /** @type {any} */ (await answer.json());
    if (!answer.ok) throw new Error(status.error.message);
    return status;
  }

  close() {
    this.#socket?.close();
  }
}

const LAST = ['response.completed', 'response.incomplete', 'response.failed'];
