// Lets the search run from disk: browsers refuse workers on file://, a hidden frame does the same work.
// The theme's search asks for `IFrameWorker` in its parent to find out where its files are.
"use strict";
(() => {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "Search worker";
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.receive(data);
      inside.importScripts = (...scripts) => scripts.reduce((done, each) => done.then(() => this.load(each)), Promise.resolve());
      this.ready = this.load(String(url));
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${url} cannot be loaded`));
        this.frame.contentDocument.body.append(script);
      });
    }

    receive(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      this.ready.then(() => {
        const { contentWindow: inside } = this.frame;
        inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      }, (error) => this.dispatchEvent(new ErrorEvent("error", { error, message: error.message })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.IFrameWorker = IFrameWorker;
  if (location.protocol === "file:") window.Worker = IFrameWorker;
})();
