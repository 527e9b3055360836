"""Screenshots show rendered text."""

from base64 import b64encode

from playwright.async_api import Page

from tests.browser.conftest import SHOTS, Shoot

WORDS = "".join(f'<p style="font: 60px sans-serif; height: 100px">{word}</p>' for word in ("", "iiii", "WWWW"))
INK = """async picture => {
    const image = await createImageBitmap(await (await fetch("data:image/png;base64," + picture)).blob())
    const pen = new OffscreenCanvas(image.width, image.height).getContext("2d")
    pen.drawImage(image, 0, 0)
    return pen.getImageData(0, 0, image.width, image.height).data.filter((value, n) => n % 4 == 0 && value < 128).length
}"""


async def test_text_is_rendered_with_real_glyphs(page: Page) -> None:
    await page.set_content(WORDS)

    nothing, thin, wide = [await ink(page, number) for number in range(3)]

    assert nothing == 0
    assert 0 < thin < wide / 2


async def test_a_screenshot_is_saved_under_the_name_of_the_test(page: Page, shoot: Shoot) -> None:
    await page.set_content(WORDS)

    picture = await shoot()

    kept = SHOTS / "test_a_screenshot_is_saved_under_the_name_of_the_test.png"
    assert picture.startswith(b"\x89PNG") and kept.read_bytes() == picture


async def ink(page: Page, paragraph: int) -> int:
    """How many dark pixels a picture of a paragraph has."""
    picture = await page.locator("p").nth(paragraph).screenshot()
    dark: int = await page.evaluate(INK, b64encode(picture).decode())
    return dark
