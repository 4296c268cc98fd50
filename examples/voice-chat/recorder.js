/** Turns the sound of a microphone into 16-bit samples, 24,000 a second, and posts them in pieces of 40 ms. It runs in the audio thread. */
class Recorder extends AudioWorkletProcessor {
  #piece = [];
  #at = 0;

  process([[samples = []]]) {
    for (; this.#at < samples.length; this.#at += sampleRate / 24_000) {
      const sample = Math.max(-1, Math.min(1, samples[Math.floor(this.#at)]));
      this.#piece.push(Math.round(sample * 32_767));
    }
    this.#at -= samples.length;
    if (this.#piece.length >= 960) this.port.postMessage(Int16Array.from(this.#piece.splice(0)));
    return true;
  }
}

registerProcessor('recorder', Recorder);
