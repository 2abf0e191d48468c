/* Browsers start no worker from the file system. A hidden frame stands in for one there, so that
   the search of this site works without a server. The theme's offline plugin would load such a
   stand-in from the network; it looks for this file's name and leaves it be. */
"use strict";
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      const start = () => {
        document.body.append(frame);
        const inside = frame.contentWindow;
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        const script = inside.document.createElement("script");
        script.src = url;
        this.ready = new Promise((resolve, reject) => {
          script.onload = () => resolve(inside);
          script.onerror = reject;
        });
        inside.document.body.append(script);
      };
      if (document.body) start();
      else this.ready = new Promise((resolve) => {
        addEventListener("DOMContentLoaded", () => { start(); resolve(this.ready); });
      });
    }

    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
