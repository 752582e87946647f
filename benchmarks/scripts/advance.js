// Waits for the worker until training has come to a step, and for the picture of it.
async (each, due) => {
  const { live } = each;
  for (;;) {
    if (!live.player.busy && live.begun?.id === live.asked.id) {
      if (live.now.time >= due || live.settled) break;
      live.player.advance(due - live.now.time);
    }
    await new Promise((done) => setTimeout(done, 2));
  }
  live.stale = true;
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
}
