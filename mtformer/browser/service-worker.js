"use strict";
// Keeps the translator on the device, so that it opens without a network. VERSION stands before this.

const KEPT = `${registration.scope} ${VERSION}`; // other apps of the server have names of their own

addEventListener("install", (event) => {
  const files = ["./", "manifest.webmanifest", "icon.svg"].map((name) => new Request(name, { cache: "reload" }));
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(files)));
  skipWaiting();
});

addEventListener("activate", (event) => {
  const isOld = (name) => name.startsWith(`${registration.scope} `) && name !== KEPT;
  const removeOld = async () => Promise.all((await caches.keys()).filter(isOld).map((name) => caches.delete(name)));
  event.waitUntil(removeOld());
});

addEventListener("fetch", (event) => {
  const find = async () => {
    const cache = await caches.open(KEPT);
    const url = event.request.url.replace(/index\.html(?=$|[?#])/, "");
    return (await cache.match(url, { ignoreSearch: true })) ?? fetch(event.request);
  };
  event.respondWith(find());
});
