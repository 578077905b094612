"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);

  // A link to a quoted line shows it where the reader is; without this script the link leads to the line.
  const dialog = byId("line");
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href^="#line-"]');
    const line = link && byId(link.getAttribute("href").slice(1));
    if (!line || !dialog.showModal || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    byId("line-title").textContent = link.getAttribute("aria-label") || link.textContent;
    dialog.querySelector("pre").textContent = line.textContent;
    dialog.showModal();
  });
  byId("line-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

  // On paper there is nothing to open.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((one) => (one.open = true));
  });
  addEventListener("afterprint", () => opened.forEach((one) => (one.open = false)));

  const lanes = document.querySelector(".lanes");
  if (!lanes) return;
  const length = data.length;
  const least = Math.max(length / 5000, 1e-7);
  const bars = [...lanes.querySelectorAll(".bar, .mark")].map((node) => {
    const text = node.querySelector("text");
    const title = node.querySelector("title");
    return {
      node, text, from: (parseFloat(node.getAttribute("x")) / 100) * length,
      lasted: node.classList.contains("bar") ? (parseFloat(node.getAttribute("width")) / 100) * length : -1,
      name: title.textContent.split("; ")[0],
    };
  });
  let from = 0;
  let shown = length;

  const seconds = (number) => {
    const digits = Math.max(0, Math.min(6, Math.ceil(1 - Math.log10(shown)) + 1));
    return parseFloat(number.toFixed(digits)) + " s";
  };

  const svg = (name, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    return node;
  };

  function axis() {
    const power = 10 ** Math.floor(Math.log10(shown / 8));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= shown / 8);
    const nodes = [];
    for (let number = Math.ceil(from / step); number * step <= from + 0.96 * shown; number++) {
      const tick = svg("svg", { x: ((number * step - from) / shown) * 100 + "%", overflow: "visible", width: 1 });
      const text = svg("text", { x: 2, y: 17 });
      text.textContent = seconds(number * step);
      tick.append(svg("path", { d: "M0 0V5" }), text);
      nodes.push(tick);
    }
    byId("axis").replaceChildren(...nodes);
  }

  function draw() {
    const room = lanes.querySelector(".track").clientWidth;
    for (const bar of bars) {
      const inside = bar.from <= from + shown && bar.from + Math.max(bar.lasted, 0) >= from;
      bar.node.style.display = inside ? "" : "none";
      if (!inside) continue;
      // What began earlier begins at the edge, so that its name stays in sight.
      const begin = bar.lasted < 0 ? bar.from : Math.max(bar.from, from);
      bar.node.setAttribute("x", ((begin - from) / shown) * 100 + "%");
      if (bar.lasted < 0) continue;
      const part = Math.min(bar.from + bar.lasted, from + shown) - begin;
      bar.node.setAttribute("width", (part / shown) * 100 + "%");
      bar.node.classList.toggle("thin", (part / shown) * room < 3);
      const fits = (part / shown) * room > (bar.text ? bar.text.textContent : bar.name).length * 6.4 + 8;
      if (fits && !bar.text) bar.node.append((bar.text = Object.assign(svg("text", { x: 4, y: 12.5 }), { textContent: bar.name })));
      if (bar.text) bar.text.style.display = fits ? "" : "none";
    }
    axis();
    const words = shown < length ? data.span : data.all;
    byId("zoomed").textContent = words.replace("{0}", seconds(from)).replace("{1}", seconds(Math.min(from + shown, data.until)));
  }

  let due = 0;
  function show(begin, span) {
    shown = Math.min(length, Math.max(least, span));
    from = Math.min(length - shown, Math.max(0, begin));
    cancelAnimationFrame(due);
    due = requestAnimationFrame(draw);
  }
  const zoom = (factor, at = 0.5) => show(from + shown * at * (1 - factor), shown * factor);
  const actions = {
    in: () => zoom(0.5), out: () => zoom(2), all: () => show(0, length),
    busy: () => show(0, data.busy),
    left: () => show(from - shown / 4, shown), right: () => show(from + shown / 4, shown),
  };
  const keys = { "+": "in", "=": "in", "-": "out", "0": "all", ArrowLeft: "left", ArrowRight: "right" };

  const tools = document.querySelector(".tools");
  tools.hidden = false;
  tools.addEventListener("click", (event) => event.target.dataset.zoom && actions[event.target.dataset.zoom]());
  lanes.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[keys[event.key]]();
  });
  const place = (event) => {
    const track = lanes.querySelector(".track").getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - track.left) / track.width));
  };
  lanes.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, place(event));
  }, { passive: false });

  let held = null;
  lanes.addEventListener("pointerdown", (event) => { if (event.button === 0) held = { at: place(event), from }; });
  addEventListener("pointerup", () => (held = null));
  lanes.addEventListener("pointermove", (event) => {
    if (held && shown < length) show(held.from + (held.at - place(event)) * shown, shown);
  });
  const pointed = byId("pointed");
  lanes.addEventListener("pointerover", (event) => {
    const node = event.target.closest(".bar, .mark");
    pointed.hidden = false;
    if (node) pointed.textContent = node.querySelector("title").textContent;
  });
  addEventListener("resize", () => show(from, shown));
  addEventListener("beforeprint", () => { from = 0; shown = length; draw(); });
  draw();
})();
