/// <reference lib="dom" />

/** The microphone and the loudspeaker of a page. */
export class Sound {
  #context = new AudioContext();
  /** @type {MediaStream | undefined} */
  #microphone;
  /** @type {Set<AudioBufferSourceNode>} */
  #playing = new Set();
  #playedUntil = 0;

  /**
   * Asks for the microphone, and hands over what it hears.
   * @param {(samples: Int16Array) => void} onSamples 24,000 a second
   */
  async listen(onSamples) {
    this.#microphone = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true } });
    await this.#context.audioWorklet.addModule('recorder.js');
    const recorder = new AudioWorkletNode(this.#context, 'recorder');
    recorder.port.onmessage = ({ data }) => onSamples(data);
    this.#context.createMediaStreamSource(this.#microphone).connect(recorder);
  }

  /**
   * Plays samples after those that it plays already.
   * @param {Int16Array} samples 24,000 a second
   */
  play(samples) {
    const buffer = this.#context.createBuffer(1, samples.length, 24_000);
    buffer.getChannelData(0).set(Array.from(samples, (sample) => sample / 32_768));
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#context.destination);
    this.#playedUntil = Math.max(this.#playedUntil, this.#context.currentTime);
    source.start(this.#playedUntil);
    this.#playedUntil += buffer.duration;
    this.#playing.add(source);
    source.onended = () => this.#playing.delete(source);
  }

  /** Stops what is still to be played. */
  hush() {
    for (const source of this.#playing) source.stop();
    this.#playing.clear();
    this.#playedUntil = 0;
  }

  close() {
    for (const track of this.#microphone?.getTracks() ?? []) track.stop();
    return this.#context.close();
  }
}
