// A page that is a file may not start a worker: the search then runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      // What the script says goes to whoever started it.
      inside.postMessage = (data) => this.onmessage?.(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      script.src = url;
      this.frame = frame;
      this.ready = new Promise((loaded) => { script.onload = loaded; });
      frame.contentDocument.body.append(script);
    }

    postMessage(data) {
      const window = this.frame.contentWindow;
      this.ready.then(() => window.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
