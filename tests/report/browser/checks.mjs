// Checks one after the other: a line each, and in the end whether all held.
let failed = 0;

export async function check(what, holds) {
  try {
    await holds();
    console.log(`ok: ${what}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED: ${what}: ${error.message}`);
  }
}

export const ended = () => process.exit(failed > 0 ? 1 : 0);
