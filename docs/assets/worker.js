// The worker that the site's search runs in: from a file as well, and with the Python API last.
{
  // A page that is a file may not start a worker: the script then runs in a hidden frame instead.
  class FrameWorker {
    constructor(url) {
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      // As from a worker: a copy of the answer, and later. An answer within the call that asked
      // would be drawn before the search field has its letter, and the letter would be lost.
      inside.postMessage = (data) => {
        const answer = new MessageEvent("message", { data: structuredClone(data) });
        setTimeout(() => this.onmessage?.(answer));
      };
      const script = frame.contentDocument.createElement("script");
      script.src = url;
      this.frame = frame;
      this.ready = new Promise((loaded) => { script.onload = loaded; });
      frame.contentDocument.body.append(script);
    }

    postMessage(data) {
      const question = new MessageEvent("message", { data: structuredClone(data) });
      this.ready.then(() => setTimeout(() => this.frame.contentWindow?.dispatchEvent(question)));
    }

    terminate() {
      this.frame.remove();
    }
  }

  // Pages that people read come before the Python API, whose names are often the very words.
  window.Worker = class extends (location.protocol === "file:" ? FrameWorker : Worker) {
    postMessage(message) {
      const items = message?.data?.items;
      if (items) this.inApi = items.map((item) => item.location.includes("reference/api.html"));
      super.postMessage(message);
    }

    set onmessage(hear) {
      super.onmessage = hear && ((event) => {
        event.data?.data?.items?.sort?.((a, b) => this.rank(a) - this.rank(b));
        hear(event);
      });
    }

    rank(found) {
      return this.inApi?.[found.id] ? 1 : 0;
    }
  };
}
